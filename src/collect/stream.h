// stream: one lane on its way into the order: its reader, and the items that wait.
//
// Items [first, inner) are before the pass's first cut, [inner, end) between the two cuts. The
// ownership intervals belong to the stream, and so to the lane, and survive its threads.
#pragma once

#include "collect/lane_reader.h"
#include "collect/slots.h"

struct image;

// A note that has its place at a position of a lane: it becomes an item there.
struct stream_barrier {
	struct stream_barrier *next;
	uint64_t head; // the lane's position
	uint64_t time_ns;
	uint32_t detail;
	uint8_t kind; // LANE_ITEM_MARK, LANE_ITEM_FORK
};

enum { STREAM_CHUNK_SLOTS = 256, STREAM_CHUNKS = LANE_SLOTS / STREAM_CHUNK_SLOTS };

// What the lane holds of a slot: since which owner sequence, and the run of waiting events.
struct stream_interval {
	uint64_t owner;
	uint32_t run; // in struct slots; 0: none waits
};

// One lane. The image owns it. Fields that are the merge's are looked at by nothing else.
struct stream {
	struct image *image; // borrowed
	uint32_t lane;
	const uint8_t *ring; // mapped twice, ours to unmap; NULL: the segment's, mapped once
	struct lane_reader reader;

	struct lane_item *items;
	size_t first, inner, end, capacity;
	uint64_t settled; // items that were before items[0] and are no longer kept
	uint64_t cut;     // the lane's head at the first look
	uint64_t seen;    // and at the second

	struct stream_barrier *barriers; // not reached yet, by position
	struct stream_interval **chunks; // STREAM_CHUNKS, made at first use

	uint64_t handle; // of the heap that its events are of (Windows); 0: malloc's
	uint32_t flags;  // of calls that allocate there
	bool halved;     // a realloc's first half was delivered alone, and nothing since
	heap_id heap;    // and in the trace, if heaps_gone is the image's
	uint32_t heaps_gone;

	thread_id thread; // whose events these are now; TRACE_NONE: not known yet
	uint32_t tid;
	char name[16];
	bool mourned; // that the lane is broken has been reported
	bool stirred; // has had events since the last look at thread names
	bool named;   // the program gave its thread the name: do not look

	size_t heap_at; // the merge's: place in the heap, from 1; 0: not in it
	bool wanted;    // the merge's: waited for
};

struct stream *stream_new(struct image *image, uint32_t lane);
void stream_free(struct stream *stream); // NULL is allowed

// Put an item after all others; the cuts stay. It is all 0. Items may move: pointers to others are
// lost by it.
struct lane_item *stream_push(struct stream *stream);

// A note has its place at position `head` of the lane, which was not decoded yet. `kind` and
// `detail` are those of the item that it becomes. Of one position, what was added first comes
// first.
void stream_add_barrier(struct stream *stream, uint8_t kind, uint64_t head, uint64_t time_ns,
			uint32_t detail);

// Decode up to `limit`, at most about `max` items. Barriers on the way become items.
// True if there is more before the limit.
bool stream_fill(struct stream *stream, uint64_t limit, size_t max);

// Read events up to `limit` into a row, as lane_reader_take_row does; none beyond a barrier. False:
// what comes next, if anything, is stream_fill's.
bool stream_take_row(struct stream *stream, uint64_t limit, uint64_t limit_ns,
		     struct lane_reader_row *row);

// Move what waits to the front; give back memory that a burst took.
void stream_settle(struct stream *stream);

// The lane's interval of a slot. Made at first use, all 0; good as long as the stream.
struct stream_interval *stream_interval_get(struct stream *stream, uint32_t slot);

// Echoes become the items that they stand for. All items are before the first cut then, and are
// moved; the two before an echo are still in the array.
void stream_expand(struct stream *stream);

// The items from `from` on belong to runs now, if they do not yet. `inner`: they are before the
// first cut.
void stream_add_runs(struct stream *stream, struct slots *slots, size_t from, bool inner);

// Item `at` belongs to a run now; it is before the first cut.
void stream_add_run(struct stream *stream, struct slots *slots, size_t at);

// No item belongs to a run any more: what the lane holds of each slot is what it held before them.
void stream_drop_runs(struct stream *stream, struct slots *slots);

// What waited between the cuts is before the first cut of the next pass.
void stream_promote(struct stream *stream, struct slots *slots);
