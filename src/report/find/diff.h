// diff: what changed between two traces, or between two windows of one, stack by stack.
//
// Rows are stacks that are the same to a reader (stack_match.h), of one program, however many
// processes ran it. Each has four figures on either side:
//
//     live        what it held at the window's end. What a process left behind when it ended counts
//                 as held, as in `report`
//     peak        what it held when the whole window was at its peak; these add up to the peak
//     allocated   what it allocated in the window
//     temporary   of that, what the same thread freed before its next allocation; only of the heap
//
// The two are read one after the other, so that only one index is open at a time. What must be kept
// of the first meanwhile are its rows, and what its stacks read as.
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "base/sink.h"
#include "report/ask/query_context.h"
#include "report/table/sheet.h"

enum diff_figure { DIFF_LIVE, DIFF_PEAK, DIFF_ALLOCATED, DIFF_TEMPORARY, DIFF_FIGURES };

// What rows are ranked by.
enum diff_order {
	DIFF_BY_LIVE,
	DIFF_BY_PEAK,
	DIFF_BY_ALLOCATED,
	DIFF_BY_COUNT,     // calls
	DIFF_BY_TEMPORARY, // their number
	DIFF_ORDERS,
};

struct diff_pair {
	struct heap_amount side[2]; // before, after
};

struct diff_row {
	struct diff_pair figures[DIFF_FIGURES];
	struct {
		process_id process; // of the first place of the row; TRACE_NONE: not there
		stack_id stack;
	} place[2];
	uint32_t program;
};

// Two processes that are the same: of one program, and in the same place of the tree. Those whose
// parents are the same come first, in their order; of what is left, those of one program, in their
// order, so that a program that a script started is the program alone.
struct diff_process {
	struct diff_pair figures[DIFF_FIGURES];
	process_id process[2]; // TRACE_NONE: not there
	uint32_t program;
};

struct diff_options {
	enum diff_order order;
	uint64_t rows_max;  // 0: all
	uint64_t bytes_min; // least change in bytes of the figure that ranks
	// A quarter of it is for rows and for what stacks read as. 0: 256 MiB.
	uint64_t memory_bytes;
	enum progress_mode progress;
	// Opens one side, when its turn has come.
	bool (*open)(void *context, int side, struct query_context *asked, struct err *err);
	void *context;
};

struct diff {
	struct diff_pair totals[DIFF_FIGURES];
	bool temporary;        // known
	struct diff_row *rows; // owned; those that changed in what ranks, most first
	size_t rows_count;
	uint64_t rows_total;    // that changed in what ranks, by enough
	uint64_t rows_left_out; // that changed in what ranks, and are not among the rows
	uint64_t appeared, vanished, changed, same; // stacks, by whether anything changed
	struct diff_process *processes;             // owned; in the order of their beginning
	size_t processes_count;
	enum diff_order order;
};

// Compare what two inquiries are about, which are { 0 } yet: the caller closes them. They are left
// then (query_context_leave). False: one cannot be opened or read, or there are too many rows
// (ERR_LIMIT).
bool diff_find(struct diff *diff, struct query_context *sides[static 2],
	       const struct diff_options *options, struct err *err);
void diff_fini(struct diff *diff); // accepts { 0 }

// What a row changed by.
int64_t diff_bytes(const struct diff_pair *pair);
int64_t diff_count(const struct diff_pair *pair);

// NULL-terminated words of the orders: "live", "peak", "allocated", "count", "temporary".
extern const char *const diff_order_words[];

struct diff_page {
	struct query_context *sides[2]; // borrowed
	const char *names[2];           // of the traces, as they were given
	const struct diff *diff;        // borrowed
	bool all_frames, colour;
	unsigned width;
};

// For people; as JSON (docs/schema/diff.json); its rows alone.
void diff_text(const struct diff_page *page, struct sink *sink);
void diff_json(const struct diff_page *page, struct sink *sink);
void diff_rows(const struct diff_page *page, struct sheet *sheet);

#endif
