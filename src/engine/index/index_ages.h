// index_ages: how long lived what calls ended in a window, one by one.
//
// Nothing but ends is looked at, by two threads that share the blocks of the window as they come: a
// few nanoseconds each. Where only lifetimes are asked for that are so long that the index has a
// list of them, that list is read in place of the blocks.
#pragma once

#include "engine/index/index_read.h"

enum { INDEX_AGES_AT_ONCE = 1024, INDEX_AGES_PARTS = 2 };

// Some ends, in no order: how long each lived (0: it began in the tick it ended in), the caller's
// value of its cell, and the cell. The first `count` of each list are set.
struct index_aged {
	uint64_t ns[INDEX_AGES_AT_ONCE];
	uint32_t of[INDEX_AGES_AT_ONCE];
	uint32_t cell[INDEX_AGES_AT_ONCE];
	uint32_t count;
};

struct index_ages {
	struct index *index;
	uint64_t from, to;
	uint64_t least_ns;         // shorter lifetimes are not asked for; they may be given
	unsigned every;            // of so many blocks one is looked at, for a sample; 0 or 1: all
	const uint8_t *marks;      // blocks to be looked at, from that of `from` on; NULL: all
	const uint32_t *of;        // by cell: whatever the caller likes; UINT32_MAX: not asked for
	const uint32_t *of_before; // the same, of what began before the window; NULL: as `of`
	void *context;
	// `part` is the thread's, from 0 on: what it is given is its own. False stops.
	bool (*take)(void *context, unsigned part, const struct index_aged *aged);
};

// False: the index cannot be read, or `take` is false (then *err is as it was). Orphans are given
// to nobody.
bool index_ages(const struct index_ages *ages, struct err *err);
