// buckets: lays a level that changes with time into a row of buckets (window_series.h).
//
//     buckets_begin       the level at the left edge
//       buckets_go        a time is reached; times never fall
//       buckets_set       the level from here on
//     buckets_end         fills what is left
#pragma once

#include "engine/window_series.h"

// Where buckets are in time.
struct buckets_axis {
	uint64_t from_ns, to_ns;
	size_t count; // at least 1
};

// The bucket of a time; of times outside, the first or the last.
size_t buckets_find(const struct buckets_axis *axis, uint64_t time_ns);

// One row of buckets being filled.
struct buckets_row {
	struct window_bucket *buckets; // borrowed
	size_t at;                     // the bucket that is open
	struct heap_amount level;
};

// The order of calls is above.
void buckets_begin(struct buckets_row *row, struct window_bucket *buckets,
		   struct heap_amount level);
void buckets_go(struct buckets_row *row, size_t bucket);
void buckets_set(struct buckets_row *row, struct heap_amount level);
void buckets_end(struct buckets_row *row, const struct buckets_axis *axis);
