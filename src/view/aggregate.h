// aggregate: a whole trace as counts of allocations, few enough for one file and exact for any
// window of whole buckets.
//
// Time is cut into equal parts, ticks, and once more at each mark; what is between two edges is
// a *bucket*. All allocations that are alike in layer, process, thread, heap, owner,
// stack, octave of size, bucket of birth, bucket and kind of death make a cell (docs/viewer.md).
// Stacks that weigh least are folded into one, "rest"; threads may be folded, and buckets made
// wider, until no more cells are left than were asked for.
//
//     aggregate_take       goes through the allocations, once for each try
//       aggregate_write    into an object of a document that is being written
//     aggregate_fini
//
// For example a trace of 8 s with 4 ticks and a mark at 3 s has edges at 0, 2, 3, 4, 6 and 8 s, and
// so five buckets. A hundred blocks of 64 bytes of one stack that were born in the bucket from 2 to
// 3 s and freed in that from 6 to 8 s are one cell, of 100 and 6,400 bytes. Whether they lived in a
// window of whole buckets, and ended in it, can be said of all alike.
#pragma once

#include "base/json.h"
#include "base/map.h"
#include "report/ask/labels.h"
#include "report/ask/opened.h"
#include "view/scrub.h"

enum { AGGREGATE_MARKS_MAX = 512 }; // that edges are made of: the first

// What tells cells apart besides birth and death.
struct aggregate_group {
	uint32_t process, thread, heap; // thread: UINT32_MAX if folded
	uint32_t stack;                 // number of a kept one
	// the octave of a size is view/octave.h's: 3 and 4 bytes are in one
	uint8_t layer, owner, octave;
};

// Allocations that are alike: how many, and their bytes.
// By its key cells are sorted, and those of one group are together.
struct aggregate_cell {
	uint64_t key; // private: group, birth, death, kind
	uint64_t count, bytes;
};

struct aggregate {
	struct opened *opened; // borrowed
	// parts of the time that are equal; and those with the marks' cuts
	size_t ticks, buckets;
	bool threads;               // distinguished
	uint64_t *edges, *edges_ns; // buckets + 1
	uint32_t *stretches;        // private: the bucket of every 2^stretch_log2th step
	unsigned stretch_log2;
	size_t *mark_edges; // which of them is a mark's, by mark
	size_t marks;
	stack_id *stacks; // by number: the trace's; 0 is "no stack"
	size_t stacks_count, stacks_total;
	uint32_t rest; // number of the folded; 0: nothing was folded
	struct aggregate_group *groups;
	size_t groups_count, groups_capacity;
	struct aggregate_cell *cells; // sorted
	size_t cells_count, cells_capacity;
	struct labels *labels; // the rest is private
	uint32_t *numbers;     // of kept stacks, by label
	struct map group_of, cell_of;
	size_t cells_max;
	bool too_many;
};

// As fine as `cells_max` cells allow, and at most `stacks_max` stacks by themselves.
// False: *err says why, and nothing is left of it.
bool aggregate_take(struct aggregate *aggregate, struct opened *opened, size_t stacks_max,
		    size_t cells_max, struct err *err);
void aggregate_fini(struct aggregate *aggregate); // accepts { 0 }

// The members "edges_ns" to "cells". `scrub`: without paths; NULL: as it is.
void aggregate_write(const struct aggregate *aggregate, const struct scrub *scrub,
		     struct json *json);
