// index_scan: goes through the steps of a window with the group of each.
//
// What sums cannot tell, and what asks for arbitrary groups, is found by going through all steps
// of the window: a few nanoseconds a step. Ends of processes take the level of their blocks down,
// at their steps.
#ifndef ENGINE_INDEX_SCAN_H
#define ENGINE_INDEX_SCAN_H

#include "engine/index_ask.h"

// A step of a group, or what the end of a process does to it.
struct index_scan_step {
	uint64_t step;
	uint64_t time_ns;
	uint64_t begin;            // of ends: where it began; 0 of exits
	struct heap_amount amount; // one allocation; of exits, all that the group loses
	uint32_t group;
	bool up;
	bool exit;
	bool last; // of its step
};

struct index_scan {
	struct index *index;
	struct index_groups *groups;
	uint64_t from, to;
	uint32_t groups_count; // higher groups are left out
	bool lives;            // `begin` is wanted
	bool single_exits;     // what an exit ends is told one kind of allocation at a time
	void *context;
	bool (*visit)(void *context, const struct index_scan_step *step); // false stops
};

// False: the index cannot be read.
bool index_scan(struct index_scan *scan, struct err *err);

// The level of each group below `groups_count` at an edge, after exits.
struct heap_amount *index_scan_levels(struct index *index, struct index_clock *clock,
				      const struct window_query *query, uint64_t edge,
				      size_t groups_count, struct err *err);

#endif
