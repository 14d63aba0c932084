// whole: what a trace adds up to from its first event to its last, kept once it was counted.
//
//     whole_read      from what an earlier question kept, or by a pass over all events
//     whole_walk        its sites, and of them what is wanted
//     whole_fini
//
// A pass takes some 50 ns of processor time an event; its result is of the size of the stacks. So
// what was counted of everything, with no filter, is written beside the trace's index (`whole` in
// its folder, which is made for it where a pass is long), and the next who asks takes it from
// there.
// It is a cache as the index is: of another trace, version or layout, or damaged, it is not used.
// Only a trace that is whole and sound has it; of others each question reads what there is.
//
// The pass is the truth, and what is kept is the very figures of it: nothing is counted in another
// way.
#pragma once

#include "engine/index/index_io.h"
#include "engine/replay/heap.h"
#include "engine/replay/pool_totals.h"
#include "engine/space/space.h"
#include "engine/window.h"

enum { WHOLE_CHUNK = 256 }; // sites that are unpacked together

struct whole {
	struct heap *heap;         // finished; without sites where they are walked
	struct space_totals vm;    // of the selected processes together
	struct pool_totals *pools; // of all
	bool kept;                 // no event was read

	// Private: sites that are unpacked as they are walked.
	struct index_in file, sites;
	size_t sites_count;
	struct heap_site *chunk; // NULL: the heap has them
};

struct whole_wish {
	const char *trace_path;
	const struct query *query;           // NULL: everything. Borrowed until whole_fini
	const struct window_options *window; // where the index is, and whether one is wanted
	// Sees each note of the trace, in their order (NULL: nobody). Where no event is read, the
	// time of one may be earlier than that of the event before it.
	void (*on_note)(void *context, const struct trace_note *note);
	void *context;
	bool walks; // the caller asks by whole_walk for sites, and not the heap
};

// Of all of the trace; `reader`, which was scanned, is moved: at its end then. It may have been
// stopped (reader_stop): then of what was read so far.
void whole_read(struct whole *whole, struct reader *reader, const struct whole_wish *wish);
void whole_fini(struct whole *whole); // accepts { 0 }

// What of a site is wanted. Its `live` is not kept.
enum whole_part {
	WHOLE_PLACE, // process and stack
	WHOLE_ALLOCATED,
	WHOLE_TEMPORARY,
	WHOLE_LIVE_AT_EXIT,
	WHOLE_AT_PEAK,
	WHOLE_LARGEST,
	WHOLE_TIMES, // first_ns, last_ns
	WHOLE_PARTS,
	WHOLE_ALL = (1 << WHOLE_PARTS) - 1,
};

// Sites in the order of heap_sites, one walk at a time:
//
//     struct whole_walk walk = whole_walk(&whole, 1 << WHOLE_PLACE | 1 << WHOLE_AT_PEAK);
//     while (whole_walk_next(&walk))
//             … walk.number, walk.site->at_peak …
struct whole_walk {
	const struct heap_site *site; // until the next; other parts than wanted may be there or not
	size_t number;                // of it, from 0

	// Private.
	struct whole *whole;
	unsigned parts;
	struct index_in in;
	const struct heap_site *sites; // up to `end` of `count`
	size_t next, end, count;
};
struct whole_walk whole_walk(struct whole *whole, unsigned parts);
size_t whole_sites_count(const struct whole *whole);

void whole_walk_load(struct whole_walk *walk); // whole_walk_next calls it

// False: that was the last.
static inline bool whole_walk_next(struct whole_walk *walk)
{
	if (walk->next == walk->count)
		return false;
	if (walk->next == walk->end)
		whole_walk_load(walk);
	walk->number = walk->next++;
	walk->site = walk->whole->chunk ? &walk->sites[walk->number % WHOLE_CHUNK]
					: &walk->sites[walk->number];
	return true;
}
