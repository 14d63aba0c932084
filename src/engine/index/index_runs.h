// index_runs: what one site did, a run at a time, from its postings or the blocks of steps.
//
//     index_runs_find     the runs of a site in some steps, with their sums
//     index_runs_read     the postings of one of them
//
// A run is up to 2^skip_log2 postings of a chunk (index_store.h); of a site that is busy in the
// chunk it is what the site did in a stretch of 2^stretch_log2 steps.
#pragma once

#include "engine/index/index.h"
#include "engine/index/index_read.h"

// A run of postings of a site: its steps are > `after`, and <= `until`.
struct site_run {
	uint64_t chunk; // the chunk's first step
	uint64_t at;    // of its bytes, in the vault
	uint32_t size;  // bytes
	uint32_t count;
	uint64_t after, until;
	uint64_t single; // the size of all, if not `several`
	bool several, packed, summed;
	bool busy;              // there are no postings: the site's steps of a stretch
	uint32_t site;          // busy
	struct index_skip skip; // summed
};

// `= { 0 }` is without any; the list is to be freed.
// In the order of their steps. `postings` is the sum of their counts, so that a caller can choose
// the cheaper way.
struct site_runs {
	struct site_run *list;
	size_t count, capacity;
	uint64_t postings;
};

// One step of a site.
struct site_posting {
	uint64_t step;
	uint64_t size;
	uint32_t source; // which site of its group
	bool ends;
	bool exit; // set where those of several sites are merged: the end of the site's process
};

// Where postings are read: the stretch that was read last is kept, since several sites ask for what
// they did at the same edge.
struct site_reading {
	struct index *index;
	struct index_block stretch; // whose `count` is 0: none yet
};

// All runs of a site with steps in [from, to), in their order. `runs` is empty. The first and the
// last may have steps outside of [from, to).
bool index_runs_find(struct index *index, uint32_t site, uint64_t from, uint64_t to,
		     struct site_runs *runs, struct err *err);

// The postings of a run. `list` has room for run->count; `source` and `exit`
// are for the caller to set.
bool index_runs_read(struct site_reading *reading, const struct site_run *run,
		     struct site_posting *list, struct err *err);
