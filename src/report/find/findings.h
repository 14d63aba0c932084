// findings: what is wrong with a program's use of memory, or could be cheaper, one by one, ranked:
// in a sentence, with how sure that is, the figures and the stack that prove it, the command line
// that shows it, what to do, and what it would save.
//
//     query_context_open    with query_context_findings_rules
//       findings_find       reads the trace twice, asks the index, looks at single moments
//       findings_text       (or findings_json)
//       findings_fini
//     query_context_close
//
// Each kind of finding is a row in a table: what it is called, what it needs of a trace, the
// function that looks for it, and the text that explains how it decides. A kind whose needs a trace
// does not meet is not looked for; that is reported, with the option of `tidemark record` that
// would have given it.
//
// A finding says what was seen. What follows from that only mostly (growth that goes on, contents
// that are equal) is called possible or likely, never certain. What is too little to matter (less
// than a fiftieth of the peak, or of the calls, or less than fixed amounts) is not listed.
#pragma once

#include "base/sink.h"
#include "report/ask/query_context.h"

// How sure a finding is. A possible one weighs half where findings are ranked.
enum findings_sure { FINDINGS_POSSIBLE, FINDINGS_LIKELY, FINDINGS_CERTAIN };

// What comes first when findings are ranked; within one, what would save most.
enum findings_class {
	FINDINGS_NOTE,    // good to know, nothing to mend by itself
	FINDINGS_SAVING,  // works, and could be cheaper
	FINDINGS_PROBLEM, // uses more and more, or fails
	FINDINGS_ERROR,   // the program is wrong
};

// How the value of a figure is shown; in JSON it is the plain number.
enum findings_unit {
	FINDINGS_COUNT,
	FINDINGS_BYTES,
	FINDINGS_TIME, // ns
	FINDINGS_RATE, // bytes a second
	FINDINGS_SHARE // thousandths
};

// A number that proves the finding, as text and as JSON.
struct findings_figure {
	const char *key; // "grown_bytes", as in JSON
	const char *label;
	enum findings_unit unit;
	uint64_t value;
};

enum { FINDINGS_FIGURES_MAX = 8 };

// What one process has of a finding that several have.
struct findings_share {
	process_id process;
	struct findings_figure figures[FINDINGS_FIGURES_MAX];
	size_t figures_count;
	uint64_t saves_calls, saves_size; // as in a finding
};

// One thing that was found. A finding of a process as a whole has stack 0; one of all processes
// still names one, where it was worst.
struct finding {
	const struct findings_kind *kind;
	unsigned number; // of its kind, from 1: "growth#1"
	enum findings_sure sure;
	char *what, *why, *advice, *command; // owned; the last without "tidemark "
	const char *tab;                     // of the viewer
	process_id process;
	bool of_several;        // processes, so that its command is of all
	stack_id stack;         // 0: none
	const char *other_role; // "freed by", NULL: there is no other stack
	stack_id other_stack;
	// the part of the window that it is about: ns since the recording began
	uint64_t from_ns, to_ns;
	struct findings_figure figures[FINDINGS_FIGURES_MAX];
	size_t figures_count;
	uint64_t saves_bytes; // at the peak, or at the end of the process, at most
	bool at_end;
	// allocations and frees together
	uint64_t saves_calls;
	uint64_t saves_size; // of the blocks that half of these calls begin and half end, in the
			     // mean; 0: they are others, and what they cost is not known
	double saves_ns;     // of processor time (findings_price); 0: not known
	// Of several processes of one program: what each has, the one with most first, whose texts
	// and figures the finding has. What it saves is the sum. None: it is of `process` alone.
	struct findings_share *shares; // owned
	size_t shares_count, shares_capacity;
	// private: where in `command` the process is chosen, and how long that is; 0: it is not
	size_t process_at, process_length;
	double weight; // private: share of all that it would save
};

struct findings;

// A row of the table of kinds. `find` adds what it finds (none is no failure) and returns false
// where the index cannot be read.
struct findings_kind {
	// what --explain takes, and the beginning of a finding's name: "growth"
	const char *id;
	const char *title;
	enum findings_class class;
	unsigned needs;   // private: set of what findings_own.h names
	const char *text; // how it decides, what it may be mistaken about, what to do
	bool (*find)(struct findings *findings, const struct findings_kind *kind, struct err *err);
};

// All kinds, the last with no id.
extern const struct findings_kind findings_kinds[];

// NULL: there is none of that name; "growth#2" is of the kind "growth".
const struct findings_kind *findings_kind_find(const char *id);

// What was not looked for, and why.
struct findings_missed {
	const struct findings_kind *kind;
	char *why; // owned
};

// All that was found in a trace, or in what the filters select of it. `facts` is NULL once
// findings_find has returned: a page needs the list alone.
struct findings {
	struct query_context *asked; // borrowed
	const char *path;            // of the trace, for command lines; borrowed
	struct finding *list;        // owned; the most important first
	size_t count, capacity;
	struct findings_missed *missed; // owned
	size_t missed_count, missed_capacity;
	uint64_t peak_bytes, allocations; // of what the filters select
	struct findings_facts *facts;     // private, while it is looked for
};

// False: the index cannot be read, or a filter that cannot be honoured.
bool findings_find(struct findings *findings, struct query_context *asked, struct err *err);

// The figures of a finding of several processes that can be added up, and their sums. Returns how
// many there are; of one process none.
size_t findings_together(const struct finding *finding,
			 struct findings_figure sums[FINDINGS_FIGURES_MAX]);
void findings_fini(struct findings *findings); // accepts { 0 }

// What a call that begins a block of this size, and one that ends it, take in a process, in ns of
// processor time. NULL, or why that is not known.
typedef const char *findings_cost(void *context, process_id process, uint64_t size,
				  double *begin_ns, double *end_ns);

// Set what findings would save of it.
void findings_price(struct findings *findings, findings_cost *cost, void *context);

// How findings are written.
struct findings_page {
	const struct findings *findings; // borrowed
	// An ID of a known kind: nothing else, and all of it; NULL: everything.
	const char *only;
	uint64_t rows_max; // of each kind; 0: all
	bool all_frames, colour;
	unsigned width;
};

// For people, and as JSON (docs/schema/findings.json). False: there is nothing of that ID.
typedef bool findings_format(const struct findings_page *page, struct sink *sink, struct err *err);
findings_format findings_text, findings_json;

// What a kind is, for people.
void findings_explain(const struct findings_kind *kind, struct sink *sink, unsigned width);

// "certain"; "problem".
extern const char *const findings_sure_words[], *const findings_class_words[];
