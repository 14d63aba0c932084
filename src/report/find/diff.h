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
// A side may be several runs of one program. Figures are then the means of its runs, a row is
// called changed only if it differs by more than runs differ among themselves, and each has the
// interval in which its change is (engine/significance.h). One family of figures is judged: those
// of all rows, of all processes and in all, so that at most one comparison of equal programs in
// twenty calls anything changed.
//
// A row that is gone and one that is new are one that moved, if nothing but the place has changed
// (diff_moves.c).
//
// Traces are read one after the other, so that only one index is open at a time. What must be kept
// of one meanwhile are its rows, and what its stacks read as.
#pragma once

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

// bytes and blocks (of `allocated`: calls); means, where a side has several runs
struct diff_pair {
	struct heap_amount side[2]; // before, after
};

// Where a row, or a process, is found first on a side.
struct diff_place {
	uint32_t run;       // of the side
	process_id process; // TRACE_NONE: not there
	stack_id stack;
};

// A row has a place on each side where it is; what it reads as is the same in both.
struct diff_row {
	struct diff_pair figures[DIFF_FIGURES]; // means of the runs
	struct diff_place place[2];
	uint32_t program;
	uint32_t number; // of its amounts
	uint32_t twin;   // private: stack_match_stack
	bool moved;      // the places are two stacks: nothing else tells them apart
};

// Two processes that are the same: of one program, and in the same place of the tree. Those whose
// parents are the same come first, in their order; of what is left, those of one program, in their
// order, so that a program that a script started is the program alone.
struct diff_process {
	struct diff_pair figures[DIFF_FIGURES];
	struct diff_place place[2]; // without a stack
	uint32_t program;
	uint32_t parent; // private: its nearest parent that is selected, + 1; 0: none
};

// One side: runs of one program. { 0 } but for `runs` and `names`.
struct diff_side {
	struct query_context *runs; // the caller's, { 0 } yet
	const char *const *names;   // of the traces, as they were given
	uint32_t count;
};

struct diff_options {
	enum diff_order order;
	uint64_t rows_max;  // 0: all, with those that changed in another figure than what ranks
	uint64_t bytes_min; // least change in bytes of the figure that ranks
	// A quarter of it is for rows and for what stacks read as. 0: 256 MiB.
	uint64_t memory_bytes;
	enum progress_mode progress;
	// Opens a run of a side, when its turn has come.
	bool (*open)(void *context, int side, uint32_t run, struct query_context *asked,
		     struct err *err);
	void *context;
};

// Figures of each run, before and after, of many rows: [row][run][figure].
struct diff_amounts {
	struct heap_amount *at; // owned
	size_t count, capacity; // amounts
};

struct diff {
	struct diff_pair totals[DIFF_FIGURES];
	// of A and of B
	uint32_t runs[2];
	struct diff_amounts total_amounts, row_amounts, process_amounts;
	struct significance *significance; // owned; NULL: a run each, all that differs has changed
	bool temporary;                    // known
	struct diff_row *rows;             // owned; those that changed in what ranks, most first
	size_t rows_count;
	uint64_t rows_total;     // that changed in what ranks, by enough
	uint64_t rows_left_out;  // that changed in what ranks, and are not among the rows
	uint64_t rows_elsewhere; // that changed in another figure alone, and are not among them
	uint64_t bytes_min;      // as it was asked for
	uint64_t appeared, vanished, moved, changed, same; // stacks, by whether anything changed
	uint64_t varied;                // those that differ by no more than runs among themselves
	struct diff_process *processes; // owned; in the order of their beginning
	size_t processes_count;
	enum diff_order order;
};

// Whether the runs are enough, and no more than can be compared. False: ERR_USAGE.
bool diff_enough_runs(const struct diff_side sides[static 2], struct err *err);

// Compare two sides. Their runs are left then (query_context_leave), and closed if nothing is shown
// of them; the caller closes all. False: one cannot be opened or read, there are too many rows
// (ERR_LIMIT), or too few runs to call anything changed (ERR_USAGE).
bool diff_find(struct diff *diff, const struct diff_side sides[static 2],
	       const struct diff_options *options, struct err *err);
void diff_fini(struct diff *diff); // accepts { 0 }

// What a row changed by.
int64_t diff_bytes(const struct diff_pair *pair);
int64_t diff_count(const struct diff_pair *pair);

// What is said of a figure's change: of a row, a process, or in all (number 0). Low and high are
// those of the interval; with a run each, both are the change.
struct diff_verdict {
	double low, high;
	bool changed;
};
struct diff_verdict diff_judge(const struct diff *diff, const struct diff_amounts *amounts,
			       size_t number, enum diff_figure figure, bool by_count);

// Of a change.
static inline uint64_t diff_magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

// Of the figure that ranks: what rows were chosen by.
struct diff_verdict diff_judge_rank(const struct diff *diff, const struct diff_row *row);

// NULL-terminated words of the orders: "live", "peak", "allocated", "count", "temporary".
extern const char *const diff_order_words[];

// What is shown of a comparison, and how. `width` is in columns.
struct diff_page {
	struct diff_side sides[2];  // borrowed
	const struct diff *diff;    // borrowed
	struct names_stack scratch; // private
	bool all_frames, colour;
	unsigned width;
};

// For people; as JSON (docs/schema/diff.json); its rows alone.
void diff_text(const struct diff_page *page, struct sink *sink);
void diff_json(const struct diff_page *page, struct sink *sink);
void diff_rows(const struct diff_page *page, struct sheet *sheet);

// Among the first `count` rows, make one of each that is gone and the new one that it has become.
// The new number of rows. Private: of diff_find.
struct stack_match;
size_t diff_moves_join(struct diff *diff, struct diff_row *rows, size_t count,
		       const struct stack_match *stack_match);
