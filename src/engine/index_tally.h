// index_tally: how many allocations of each cell are in a window, of lifetimes that a query asks
// for.
//
// Every end in the window is looked at, and everything that lives at its end: a few nanoseconds
// each, by two threads.
#ifndef ENGINE_INDEX_TALLY_H
#define ENGINE_INDEX_TALLY_H

#include "engine/index_read.h"

// Of one cell, by enum window_type. No process's end is an end here: what lived then is AIFO or
// AOFO, and its lifetime ended with its process, or with the trace.
struct index_tally {
	uint32_t type[WINDOW_TYPES];
};

// The query's filter by lifetime is the only one that matters. `tallies` has cells_count entries,
// all 0.
bool index_tally(struct index *index, const struct window_query *query, struct index_tally *tallies,
		 struct err *err);

#endif
