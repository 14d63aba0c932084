// sites: the heap's sites as rows of a report, equal ones merged, the heaviest first.
//
// Two sites of the engine may be one to a reader: a library that was unmapped and mapped again
// has its code at other addresses, and on a terminal two calls on one line look the same. Rows
// are therefore merged by what is said about their stacks:
//
//     SITES_EXACT     the same process, and every frame at the same offset of the same file
//     SITES_AS_SHOWN  the same executable, and every frame the same function, file and line (or,
//                     where the line is not known, the same offset)
//
// Only those rows are kept that answer one of the questions; of the others there are the sums.
//
// Each of the five questions is a row in a table: which figure it asks about, and whether bytes or
// calls make a row heavy.
#pragma once

#include "base/progress.h"
#include "engine/whole.h"
#include "report/ask/names.h"
#include "report/find/reached.h"

enum sites_merge { SITES_EXACT, SITES_AS_SHOWN };

enum sites_question {
	// what was never freed; what lived at the peak; what was allocated, by bytes and by calls;
	// what was freed before its thread's next allocation
	SITES_LIVE_AT_EXIT,
	SITES_PEAK,
	SITES_BYTES,
	SITES_CALLS,
	SITES_TEMPORARY,
	SITES_QUESTIONS_COUNT,
};

// One row: all sites that read the same.
struct sites_row {
	process_id process; // of the first site merged into it
	stack_id stack;     // the same
	uint32_t sites_count;
	uint32_t processes_count;
	process_id process_latest; // private
	// by question: how many processes have any of its amount, and the last of them
	uint32_t having_count[SITES_QUESTIONS_COUNT];
	process_id having[SITES_QUESTIONS_COUNT];
	// of one allocation, as it was asked for
	uint64_t largest_bytes;
	// when the first and the last allocation of the row were
	uint64_t first_ns, last_ns;
	struct heap_amount amounts[SITES_QUESTIONS_COUNT];
	struct heap_amount lost; // of live at exit: unreachable, where that is known
	double variances[SITES_QUESTIONS_COUNT]; // of bytes, or calls, from samples; else 0
};

// What is listed: the `rows_max` (0: all) heaviest rows of at least `bytes_min` bytes.
struct sites_options {
	enum sites_merge merge;
	uint64_t rows_max;
	uint64_t bytes_min;
	const struct reached *reached; // borrowed; NULL: not known
	unsigned unknown;              // questions (1 << each) that the trace does not tell of
};

// One question's answer over all rows, kept or not.
struct sites_sums {
	struct heap_amount amount;
	uint64_t rows;   // that have any of it
	double variance; // from samples, of bytes or calls; else 0
};

// The rows that are kept and the sums of all. A row that answers two questions is there once.
struct sites {
	struct sites_options options;
	struct sites_row *rows; // owned
	size_t count;
	struct sites_sums sums[SITES_QUESTIONS_COUNT];
};

// Merge the sites of a whole trace. `names` is asked only for SITES_AS_SHOWN.
void sites_init(struct sites *sites, const struct sites_options *options, struct whole *whole,
		const struct reader *reader, struct names *names, struct progress *progress);
void sites_fini(struct sites *sites);

// The answer to one question.
struct sites_list {
	const struct sites_row **rows; // owned; borrowed from a struct sites
	size_t count;                  // rows in the list
	struct heap_amount total;      // of all rows, listed or not
	struct heap_amount rest;       // of the rows that were left out
	double total_variance;         // from samples, of bytes or calls; else 0
	double rest_variance;
	size_t rest_count;
};

// What is listed for a question.
struct sites_list sites_list(const struct sites *sites, enum sites_question question);
void sites_list_fini(struct sites_list *list);

// "live_at_exit": the question's key in JSON and CSV.
const char *sites_key(enum sites_question question);

// The standard error behind a variance, as a whole number.
uint64_t sites_error(double variance);

// Whether the question weighs calls rather than bytes.
bool sites_by_count(enum sites_question question);
