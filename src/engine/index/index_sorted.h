// index_sorted: how long lived all that calls ended in a trace, by cell and in rising order, kept
// beside its index.
//
//     index_sorted_open       what is kept; where nothing is, it is made
//       index_sorted_each     once, or more often
//     index_sorted_close
//
// Medians of the whole trace need no look at its steps then, but at some bits for each lifetime
// that is asked for. It is a cache as the index is: made at the first question, and not believed
// where it does not fit.
#pragma once

#include "engine/index/index_ages.h"

struct index_sorted;

// For a window. NULL: it is not the whole trace, or so short that its steps are as soon gone
// through; or nothing is kept, and can be kept, which is tried once. *err is ERR_STOPPED then, if
// whoever asked wants no answer any more, and else as it was.
struct index_sorted *index_sorted_open(struct index *index, const struct window_query *query,
				       struct err *err);
void index_sorted_close(struct index_sorted *sorted); // NULL is allowed

// All of them together, as ranks.h has them: how many, the median and the 99th percentile.
struct index_sorted_total {
	uint64_t count, median_ns, high_ns;
};
struct index_sorted_total index_sorted_total(const struct index_sorted *sorted);

// Lifetimes of one cell: `none` of 0, and `count` others in `ns`, rising. A cell may come in
// several runs. `part` is the thread's, and `of` the caller's value of the cell.
struct index_sorted_run {
	uint64_t none;
	const uint64_t *ns;
	uint32_t count, of;
};

// Of all cells whose value (by cell) is not UINT32_MAX, by two threads. False: what is kept is
// damaged, or `take` was false (then *err is as it was).
bool index_sorted_each(struct index_sorted *sorted, const uint32_t *of,
		       bool (*take)(void *context, unsigned part,
				    const struct index_sorted_run *run),
		       void *context, struct err *err);

// It is not to be used again.
void index_sorted_forget(struct index *index);

// As window_lived.
bool index_lived(struct index *index, const struct window_query *query,
		 void (*each)(void *context, unsigned part, const struct window_lived *lived),
		 void *context, bool *known, struct err *err);
