// window_series: levels over time, for pictures and for those who look for shapes.
//
// A *bucket* is a stretch of time. What is kept of it is its *peak*, not its average: a spike
// shorter than a bucket keeps its height. Bucket b of n of a window from time t0 to t1 is
// (t0 + b * (t1 - t0) / n, t0 + (b + 1) * (t1 - t0) / n]; the level that it begins with counts for
// its peak. Where a bucket holds very many steps, its borders may be moved by a small part of its
// width to where the index has sums; peaks are exact for the borders that were used, no step is
// left out or counted twice, and the window's own edges are not moved.
//
// Levels are those after events. Of a realloc that is one event only the outcome counts, where both
// its steps are of the group and in the window: in between, the level is lower by all of the old
// block, and never was. One step alone is a level of its own, and so are the halves of a realloc
// that have other events between them.
//
// Levels drop when a process exits or execs, in any mode.
#pragma once

#include "engine/window.h"

struct window_bucket {
	uint64_t bytes_peak;
	uint64_t bytes_low; // the lowest level, the one that it begins with included
	uint64_t count_peak;
	uint64_t bytes_end; // level at its end
	uint64_t count_end;
};

// The level of the query's one layer, whatever else the query says, in `count` buckets.
bool window_timeline(struct window *window, const struct window_query *query,
		     struct window_bucket *buckets, size_t count, struct err *err);

// The same for each group of the query below `groups_count` (higher ones are left out), by scan:
// buckets[group * count + bucket].
bool window_series(struct window *window, const struct window_query *query, size_t groups_count,
		   struct window_bucket *buckets, size_t count, struct err *err);

// A level goes up or down.
struct window_change {
	uint64_t edge; // after the step
	uint64_t time_ns;
	uint64_t bytes; // of one allocation
	uint32_t group;
	bool up;
	bool exit; // down, because its process exited or exec'ed
	bool last; // of its step; a level between two changes of one step was never there
};

// Every change of the query's level in the window, in order, by scan. `each` returns false to
// stop. What is there at the window's beginning, window_ask says (from == to, exit_frees).
bool window_changes(struct window *window, const struct window_query *query,
		    bool (*each)(void *context, const struct window_change *change), void *context,
		    struct err *err);

// A stretch of a few hundred steps, summed up. A realloc is in one stretch with both its steps.
struct window_stretch {
	uint64_t from, to;              // edges
	uint64_t bytes_low, bytes_high; // of the levels after its events
	uint64_t bytes_end;             // the level at `to`
};

// The same for those who need not see every change: where the query leaves nothing out and no
// process ends, `whole` is offered a stretch first. It returns true to take it as it is, and false
// to be shown its changes. Which stretches there are depends on nothing but the window.
bool window_curve(struct window *window, const struct window_query *query,
		  bool (*whole)(void *context, const struct window_stretch *stretch),
		  bool (*each)(void *context, const struct window_change *change), void *context,
		  struct err *err);

// What began and what ended in a bucket.
struct window_flow {
	struct heap_amount allocated, freed; // freed: by calls, not by the end of a process
};

// Allocations and frees of each group and bucket, by scan: flows[group * count + bucket].
bool window_flows(struct window *window, const struct window_query *query, size_t groups_count,
		  struct window_flow *flows, size_t count, struct err *err);

// How long the allocations lived that a call ended in the window: for each group below
// `groups_count`, counts by lifetime, in classes of eight to an octave. By scan.
// classes[group * WINDOW_LIFETIME_CLASSES + window_lifetime_class(ns)].
enum { WINDOW_LIFETIME_CLASSES = 64 * 8 };
bool window_lifetimes(struct window *window, const struct window_query *query, size_t groups_count,
		      struct heap_amount *classes, struct err *err);

// Where the answer to one of the three questions by group goes, zero before: items[group * count +
// i], for groups below groups_count. Each is nothing but sums, so that those of two layers add up.
struct window_sums {
	size_t groups_count, count;
	union {
		struct window_bucket *buckets;
		struct window_flow *flows;
		struct heap_amount *classes; // WINDOW_LIFETIME_CLASSES each
		uint64_t *numbers;
	};
	struct window *window; // of buckets: is asked for the edges that split an event
};

// 0 to 7 ns have a class each; then eight classes to each power of two.
uint32_t window_lifetime_class(uint64_t lifetime_ns);

// The shortest lifetime of a class.
uint64_t window_lifetime_floor(uint32_t class_number);
