// index_tally: how many allocations of each cell are in a window, of lifetimes that a query asks
// for.
//
// Every end in the window is looked at, and everything that lives at its end: a few nanoseconds
// each, by two threads.
#pragma once

#include "engine/index/index_read.h"

// Of one cell, modulo 2^16.
struct index_tally {
	uint16_t count[2]; // begun in the window; before it
};

// No process's end is an end here: what lived then did not end in the window, and its lifetime
// ended with its process, or with the trace. Counts are small, so that more of them are in the
// caches.
struct index_tallies {
	struct index_tally *ended,
		*living; // by cell: what ended in the window; what did not. One table
	uint32_t (*wraps)[WINDOW_TYPES]; // how often those have passed 2^16; NULL: none has
	uint32_t cells_count;
	struct index_tables *tables; // borrowed
};

static inline uint64_t index_tallied(const struct index_tallies *tallies, uint32_t cell,
				     enum window_type type)
{
	bool before = type == WINDOW_AOFI || type == WINDOW_AOFO;
	bool ends = type == WINDOW_AIFI || type == WINDOW_AOFI;
	const struct index_tally *tally = &(ends ? tallies->ended : tallies->living)[cell];
	uint64_t wraps = tallies->wraps ? tallies->wraps[cell][type] : 0;

	return wraps << 16 | tally->count[before];
}

// The query's filter by lifetime is the only one that matters. The caller calls index_tallies_fini,
// also where it failed.
bool index_tally(struct index *index, const struct window_query *query,
		 struct index_tallies *tallies, struct err *err);
void index_tallies_fini(struct index_tallies *tallies);
