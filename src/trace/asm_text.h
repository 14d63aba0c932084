// asm_text: a text that is being assembled: where it is read, and the trace it becomes.
//
// asm_read.c and asm_vm.c read lines with it. A function that takes a word moves past it; one
// that fails says where and returns false (or NULL).
#pragma once

#include "trace/asm_labels.h"
#include "trace/asm_lex.h"
#include "trace/writer.h"

struct asm_text {
	struct asm_lex lex;
	struct asm_labels labels;
	struct err *err;
	int fd;
	struct trace_info info;
	// A text of such lines alone is a trace without an item.
	bool described;        // there was a line about the trace as a whole
	struct writer *writer; // NULL while there are only such lines
	uint64_t time_ns;
	process_id last_process; // TRACE_NONE: none yet
	size_t at;               // the next word of the line
	bool snapshot_open;      // its lines may go on
	// Its arrays are kept from one snapshot to the next, and freed when the text ends.
	struct trace_snapshot snapshot;
	size_t mappings_capacity, pages_capacity;
	bool reach_open; // the same
	struct trace_reach reach;
	size_t reach_capacity;
};

// A field of a `key=value` word, and where its number goes.
// Fields of a line may come in any order; one that is there twice has its last value.
struct asm_field {
	const char *key; // NULL: the end of a list
	uint64_t *number;
	uint64_t max; // 0: any
};

// Fail at a word, or (NULL) at the end of the line. Always false.
bool asm_text_fail(struct asm_text *text, const struct asm_word *word, const char *what);

// The next word, or NULL at the end of the line; asm_text_take fails there.
struct asm_word *asm_text_peek(struct asm_text *text);
struct asm_word *asm_text_take(struct asm_text *text, const char *what);

// Fails unless the line is at its end.
bool asm_text_at_end(struct asm_text *text);

// Is it this word, unquoted? False for NULL.
bool asm_text_is(const struct asm_word *word, const char *text);

// A number; "an address", say, for the message.
bool asm_text_number(struct asm_text *text, const char *what, uint64_t *value);

// START-END, END not below START.
bool asm_text_range(struct asm_text *text, uint64_t *start, uint64_t *end);

// A label of the class, which must be known.
bool asm_text_label(struct asm_text *text, char class, const char *what, uint32_t *id);

// Does the next word name a thing of the class? Takes it then.
bool asm_text_if_label(struct asm_text *text, char class, uint32_t *id);

// A new label. The id is that which the writer will give.
bool asm_text_new_label(struct asm_text *text, char class, uint32_t id);

// The next word if it is `key=…`: its value, or NULL.
char *asm_text_value(struct asm_text *text, const char *key);

// The next word if it is one of the fields. *taken says whether it was.
bool asm_text_field(struct asm_text *text, const struct asm_field *fields, bool *taken);

// The rest of the line: fields, in any order, and among them words that `other` takes, one at a
// time. A word that is neither fails with `expected`, if `other` has not said what is wrong.
bool asm_text_fields(struct asm_text *text, const struct asm_field *fields,
		     bool (*other)(struct asm_text *text, void *context), void *context,
		     const char *expected);

// The next word if it is in quotes: moves past it, and returns its text. Else NULL.
char *asm_text_quoted(struct asm_text *text);

// p1, or nothing where a process was defined: that one. `what` needs it, for the message.
bool asm_text_process(struct asm_text *text, const char *what, process_id *process);
