// sheet: a table of an answer. Its columns are declared once, its rows are walked once, and a form
// (CSV, Markdown, the rows of a JSON document …) makes of each row what a reader of that form
// expects.
//
//     sheet_begin      the columns, and what their figures are found in
//       sheet_row        for each row, in order
//     sheet_end
//
// A column is one line: its name in CSV and JSON, what its figures are (and so their unit), how one
// is got from a row, and what it means. For example
//
//     { "live_bytes", SHEET_BYTES, 0, SHEET_FIELD(struct growth_row, live.bytes),
//       .meaning = "live at the end" }
//
// is 2048 in CSV, "live_bytes": 2048 in JSON, and "2.0 KiB" under the heading "live bytes" in
// Markdown. Who writes rows does not ask which form it is.
//
// People see on a terminal the columns that have a look, each row before its stack.
//
// To add a column: its line, and docs/schema. To add a form: its three functions, and its line in
// SHEET_FORMS, from which the commands with PRINT_OPTIONS_ROWS_SHEET have their option.
#pragma once

#include "base/json.h"
#include "report/ask/names.h"
#include "report/ask/query_context.h"
#include "report/table/stack_text.h"

#include <stddef.h>

// What a figure is, from which its unit follows: people read "2.0 KiB", programs 2048.
enum sheet_kind {
	SHEET_TEXT,   // cell.text; NULL is an empty one
	SHEET_STACK,  // cell.stack
	SHEET_NUMBER, // cell.u64: without a unit, as a pid or a line
	SHEET_HEX,    // the same: an address
	SHEET_REAL,   // cell.real, without a unit
	SHEET_BYTES,  // cell.u64, or cell.i64 of a column that is signed
	SHEET_COUNT,  // the same
	SHEET_TIME,   // cell.u64: nanoseconds
	SHEET_RATE,   // cell.real: bytes a second
	SHEET_OBJECT, // in JSON only: no single value
	SHEET_SITE,   // stands for the columns of a site, as sheet->site_of gives it
};

// What sets a column apart. Most have none of these.
enum sheet_flag {
	SHEET_FLAT_ONLY = 1 << 0, // not in JSON
	SHEET_JSON_ONLY = 1 << 1,
	SHEET_SIGNED = 1 << 2,
	SHEET_CHANGE = 1 << 3 | SHEET_SIGNED, // more is better shown as "+"
	SHEET_PROGRAMS = 1 << 4,              // people do not miss it
	SHEET_HEADS = 1 << 5,                 // people see rows of one value as a table of its own
	SHEET_PEOPLE_ONLY = SHEET_FLAT_ONLY | SHEET_JSON_ONLY, // on a terminal alone
	SHEET_ZERO = 1 << 6, // what is not known is 0 in flat forms, not empty
};

// One figure or text of a row. Unknown is not 0: it is empty in CSV, null in JSON, and a dash for
// people.
// Which member counts says the column's kind. Texts and stacks are borrowed, and hold until the
// next row.
struct sheet_cell {
	bool unknown;
	union {
		uint64_t u64;
		int64_t i64;
		double real;
		const char *text;
		const struct names_stack *stack;
	};
};

struct sheet;
struct sheet_column;

// What a cell is found by.
// Lives for one call: none of it is kept.
struct sheet_at {
	struct sheet *sheet;
	const void *row;
	const struct sheet_column *column;
};

// How a column is seen on a terminal. Most are not: `width` is 0.
struct sheet_look {
	unsigned char place; // from 1, in the order in which people see them
	signed char width;   // figures end there; below 0: two blanks, and a text begins
	enum paper_style style;
	const char *titles[2]; // the second is under the first; NULL: none
};

// One line of a table's declaration. Where `get` is NULL the column stands for others
// (SHEET_SITE) or writes itself (`json`).
struct sheet_column {
	// in CSV and JSON: lower case with underscores, and the unit where it has one ("_bytes",
	// "_ns")
	const char *name;
	enum sheet_kind kind;
	unsigned flags; // set of enum sheet_flag
	struct sheet_cell (*get)(const struct sheet_at *at);
	size_t at; // for `get`: an offset, a number
	const char *meaning;
	const char *word; // for people, where they choose columns
	struct sheet_look look;
	const char *absent; // of a figure, for people: what stands for one that is not known
	void (*json)(const struct sheet_at *at); // of SHEET_OBJECT: writes keys and values
};

// `get` and `at` of a member of the row: a number, a double, or a text that is there.
#define SHEET_FIELD(type, member) sheet_field, SHEET_AT(type, member)
#define SHEET_AT(type, member) \
	offsetof(type, member) | sizeof(((type *)NULL)->member) << SHEET_FIELD_BITS
enum { SHEET_FIELD_BITS = 24 };
struct sheet_cell sheet_field(const struct sheet_at *at);

// `get` of a part of the row's site, which is in `at`.
enum sheet_part {
	// the pid; its number in the trace's list; the path of its executable
	SHEET_PROCESS,
	SHEET_PROCESS_ID,
	SHEET_EXE,
	SHEET_FUNCTION, // of the first frame that is no allocator wrapper, as those that follow
	// of that frame: the file, the line in it, the module, the offset in the module
	SHEET_SOURCE,
	SHEET_LINE,
	SHEET_MODULE,
	SHEET_OFFSET,
	// the frames that called it, innermost first
	SHEET_CALLERS,
};
struct sheet_cell sheet_site(const struct sheet_at *at);

// A text, NULL where there is none; a number, that may not be known.
static inline struct sheet_cell sheet_text(const char *text)
{
	return (struct sheet_cell){ .unknown = !text, .text = text };
}

static inline struct sheet_cell sheet_u64(bool known, uint64_t value)
{
	return (struct sheet_cell){ .unknown = !known, .u64 = value };
}

// One stack of one process.
struct sheet_site {
	const struct query_context *asked;
	process_id process;
	stack_id stack;
};

// What is above and below a table that is a page by itself.
struct sheet_page {
	const char *command;                  // "window"
	const struct query_context *sides[2]; // the second: NULL, but for comparisons
	const char *names[2];                 // of their files
};

// How a table is written. The three functions are called in this order; `row` is given only rows
// that are to be written.
struct sheet_form {
	const char *name;
	bool flat;  // a cell is one value
	bool part;  // of a document, which says itself what SHEET_HEADS is about
	bool page;  // it has the warnings in it
	bool looks; // its columns are those with a look
	void (*begin)(struct sheet *sheet);
	void (*row)(struct sheet *sheet, const void *row);
	void (*end)(struct sheet *sheet);
};

struct sheet {
	const struct sheet_form *form; // borrowed, as all that is not said to be otherwise
	struct sink *sink;
	struct json *json;         // of sheet_in_json
	struct stack_text *stacks; // of sheet_in_text, as what follows
	unsigned gap;              // columns between the figures and the stack
	const char *who;           // title of the stacks; NULL: none
	void (*above)(struct sheet *sheet, const void *row); // before each row; NULL: nothing
	const char *first; // the name of the column that people see first, bold; NULL: as placed
	enum paper_style instead_style;
	const char *instead; // what is seen in place of a row's stack, said by `above`; NULL: none
	struct sheet_page page; // of forms that are one

	// For the getters of columns, set by who writes rows.
	const void *context;
	struct sheet_site (*site_of)(const struct sheet *sheet, const void *row); // of SHEET_SITE
	uint64_t left_out; // rows that there are, and that are not written

	// Private.
	struct sheet_column *columns; // owned; those that the form has
	size_t count;
	const struct trace_process *process; // of the row's site
	struct sheet_site site;
	struct names_stack stack;
	struct str scratch, text;
	struct json line; // of sheet_jsonl
	unsigned margin;  // of sheet_in_text: columns to the left of all figures
	struct sheet_grid *grid;
};

// Begin with the columns that the form has.
void sheet_begin(struct sheet *sheet, const struct sheet_column *columns, size_t count);
void sheet_row(struct sheet *sheet, const void *row);
void sheet_end(struct sheet *sheet); // forgets all but the form

// What a site's stack is in JSON; and without "stack_complete", of a moment.
void sheet_write_stack(const struct sheet_at *at);
void sheet_write_frames(const struct sheet_at *at);

// The rows of a JSON document: objects in an array that is open.
struct sheet sheet_in_json(struct json *json);

// The rows of a page for people: titles, where a column has one, then the figures of each row at
// the right end of what is left in front of its stack, and the callers below.
struct sheet sheet_in_text(struct stack_text *stacks, unsigned gap);

// What a command can write, besides text and its JSON: a word for the option, and its help.
#define SHEET_FORMS(X)                                           \
	X(csv, CSV, "write one table of comma-separated values") \
	X(jsonl, JSONL, "write JSON, a line for each row")       \
	X(markdown, MARKDOWN, "write Markdown, for pull requests")

#define SHEET_DECLARE(word, id, help) extern const struct sheet_form sheet_##word;
SHEET_FORMS(SHEET_DECLARE)
#undef SHEET_DECLARE

// For forms: a cell of the row; the key and the value that a column is in JSON; the plain text of a
// cell, appended.
struct sheet_cell sheet_get(struct sheet *sheet, const void *row,
			    const struct sheet_column *column);
void sheet_add_plain(const struct sheet_column *column, const struct sheet_cell *cell,
		     struct str *text);

// The first `length` bytes of a text, or all of it, with nothing in it that is Markdown or HTML, or
// is not UTF-8.
void sheet_write_markdown(struct sink *sink, const char *text, size_t length);

// For people: a figure with its unit, appended; a sign where it is a change. `minus` is "-" or "−".
void sheet_add_figure(const struct sheet_column *column, const struct sheet_cell *cell,
		      const char *minus, struct str *text);
