// event_bitmap: which events begin or end the blocks that a query selects.
//
// Some of what a query asks is known only once a block has ended: how long it lived, whether it
// outlived a window. So this reads the trace, pairs each block's beginning with its end, and
// keeps two bits for each event; whoever reads the trace a second time asks for them.
//
// Blocks are those of malloc and of named heaps, by the rules of lives.h. A block that did not end,
// or only with its process, lived until the trace's end, or the process's, and has not been freed.
#pragma once

#include "base/progress.h"
#include "engine/moment.h"
#include "engine/query.h"

struct event_bitmap;

// Reads the trace from its beginning, and rewinds the reader. `window` says what the query's types
// are about. Memory: two bits for each event, and `memory_bytes` for the blocks that live at one
// time; more of them are paired by way of temporary files, or in several readings.
struct event_bitmap *event_bitmap_new(struct reader *reader, const struct query *query,
				      const struct moment_edge window[2], uint64_t memory_bytes,
				      struct progress *progress);
void event_bitmap_free(struct event_bitmap *event_bitmap); // NULL is allowed

// Whether the event of this number begins, or ends, a block that is selected. A realloc may do
// both. Never for events that are about no block.
bool event_bitmap_begin(const struct event_bitmap *event_bitmap, uint64_t number);
bool event_bitmap_end(const struct event_bitmap *event_bitmap, uint64_t number);
