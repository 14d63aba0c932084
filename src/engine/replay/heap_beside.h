// heap_beside: counts in a thread beside the one that goes through the events.
//
// Finding blocks and counting them are as much work as each other, and what is counted says nothing
// of where a block is. So one thread goes through the events and the tables of blocks and hands
// over changes, and a second counts them, in their order:
//
//     events ──► blocks of a process ──► changes, 1,024 a piece ──► levels, sites, peaks, bounds
//                (this thread)                                      (the thread beside)
//
// Where both are wanted at once (a process ends, tables grow, a realloc is undone), this thread
// joins the other one: it waits until all is counted, and for some thousands of events counts by
// itself. So what needs that often costs no more than one thread does.
#pragma once

#include "engine/replay/heap_own.h"

enum {
	HEAP_BESIDE_PIECE = 1024,
	HEAP_BESIDE_PIECES = 16,
	HEAP_BESIDE_FIRST = 1 << 17, // events: fewer are not worth a thread
};

struct heap_beside_piece {
	uint32_t count;
	struct heap_change changes[HEAP_BESIDE_PIECE];
};

struct heap_beside;

// Changes may be handed over from here on: where there are enough events for that, a thread to be
// had, and two processors for them. Until the next join.
void heap_beside_begin(struct heap *heap);

// The same at once, whatever there is. False: there is no thread.
bool heap_beside_start(struct heap *heap);

// All that was handed over is counted, and heap->apart is false.
void heap_beside_join(struct heap *heap);

// For ever. heap_beside_begin does nothing from here on.
void heap_beside_end(struct heap *heap);

// The next piece with room; heap->apart is set.
struct heap_beside_piece *heap_beside_turn(struct heap_beside *beside);

static inline void heap_beside_add(struct heap *heap, const struct heap_change *change)
{
	if (heap->piece->count == HEAP_BESIDE_PIECE)
		heap->piece = heap_beside_turn(heap->beside);
	heap->piece->changes[heap->piece->count++] = *change;
}
