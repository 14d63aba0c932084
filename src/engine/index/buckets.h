// buckets: lays a level that changes with time into a row of buckets (window_series.h).
//
//     buckets_begin       the level at the left edge
//       buckets_go        a time is reached; times never fall
//       buckets_set       the level from here on
//       buckets_move      the same, of one block that begins or ends; but the level after an end is
//                         noted as low by what follows: buckets_fell, or the bucket's end
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
	struct window_bucket *open; // borrowed; its level at the end is set when it is over
	size_t at;                  // its number
	struct heap_amount level;
};

// The order of calls is above.
void buckets_begin(struct buckets_row *row, struct window_bucket *buckets,
		   struct heap_amount level);
void buckets_go(struct buckets_row *row, size_t bucket);
void buckets_set(struct buckets_row *row, struct heap_amount level);
void buckets_end(struct buckets_row *row, const struct buckets_axis *axis);

// Without a jump for which of the two it is, as nobody can predict that; that a level is higher or
// lower than all of its bucket is rare. True: the block begins, and the level before it is lower,
// which the caller notes by buckets_fell if it was ever there. So a fall is looked at once, at its
// foot.
static inline bool buckets_move(struct buckets_row *row, uint64_t size, bool ends)
{
	uint64_t minus = 0 - (uint64_t)ends;
	struct window_bucket *open = row->open;
	uint64_t bytes = row->level.bytes + ((size ^ minus) - minus);
	uint64_t count = row->level.count + (1 | minus);
	bool foot = (row->level.bytes | minus) < open->bytes_low; // where it ends, no level is

	row->level = (struct heap_amount){ count, bytes };
	if (bytes > open->bytes_peak)
		open->bytes_peak = bytes;
	if (count > open->count_peak)
		open->count_peak = count;
	return foot;
}

// The level was as low as that.
static inline void buckets_fell(struct buckets_row *row, uint64_t bytes)
{
	if (bytes < row->open->bytes_low)
		row->open->bytes_low = bytes;
}
