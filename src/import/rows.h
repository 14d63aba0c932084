// rows: events as rows of named columns, as CSV and JSONL have them.
//
// The names of the columns say what they hold; a time's says its unit. docs/formats.md lists the
// names and the words of the `op` column.
//
// For example a CSV file whose first line is "time_us,op,address,size" has times in microseconds;
// then "12,malloc,0x1000,64" is a row, with everything else NULL.
#pragma once

#include "base/str.h"
#include "import/intake.h"

// Numbers are decimal, or hexadecimal with 0x. ROWS_OLD is the address that a realloc was given;
// ROWS_THREAD and ROWS_PROCESS are any words, numbers being ids; ROWS_STACK a folded stack.
enum rows_column {
	ROWS_TIME,    // with the unit that the column's name says
	ROWS_OP,      // what was called
	ROWS_ADDRESS, // of the block; of a realloc, the new one
	ROWS_SIZE,    // bytes that were asked for
	ROWS_OLD,
	ROWS_THREAD,
	ROWS_PROCESS,
	ROWS_STACK,
	ROWS_CALL,                   // of an alloc or a free: what did it; a realloc is one of each
	ROWS_COLUMNS,                // how many there are
	ROWS_IGNORED = ROWS_COLUMNS, // a column of another name
};

// `{ .intake = … }` before the first column. Columns are added first, then rows_begin, then rows.
struct rows {
	struct intake *intake; // borrowed
	bool begun;
	bool has[ROWS_COLUMNS];
	uint64_t time_scale; // nanoseconds; 0: the first value says
	enum intake_order order;
	uint64_t first_ns;   // is 0 in the trace
	uint64_t count;      // rows so far
	uint64_t other;      // rows of other kinds than events of memory
	char other_word[32]; // the first of them
};

// A column of the header, or a key of the first line: what it holds. Upper and lower case are
// alike. ROWS_IGNORED: what it holds is not read.
enum rows_column rows_add_column(struct rows *rows, const char *name);

// What a name means, once the columns are known.
enum rows_column rows_find_column(const char *name);

// Whether the columns suffice, once all were added and before the first row. False: *err says which
// is missing.
bool rows_begin(struct rows *rows, struct err *err);

// A row; fields that it lacks are NULL or "". False: the row cannot be one, and *err says why,
// without the line's number. The texts are borrowed for the call.
bool rows_take(struct rows *rows, const char *const fields[ROWS_COLUMNS], struct err *err);

// Lines about what was left out or assumed.
void rows_remark(const struct rows *rows, struct str *remarks);
