// effect: what an event does to blocks on heaps, said once for all who follow the lives of blocks.
//
//     malloc, calloc, aligned    begins                   free             ends
//     realloc                    ends, begins             heap free        ends
//     realloc, first half        ends, and is open        heap reset       ends all of the heap
//     realloc, second half       begins                   heap destroy     ends all of the heap
//     realloc undone             the open half ended      a failed call    nothing
//                                nothing after all        virtual memory   nothing
//
// For example a realloc of 0x10 that another thread's event comes between, and one that fails:
//
//     0  t  malloc         0x10 16    BEGINS  CALL                  0x10 lives
//     1  t  realloc-free   0x10       ENDS    CALL  MOVES HALF      t has a half open: 0x10
//     2  u  malloc         0x10 8     BEGINS  CALL                  another block at 0x10
//     3  t  realloc-alloc  0x40 32    BEGINS  CALL  MOVES           0x40 lives, moved from 0x10
//     4  t  realloc-free   0x40       ENDS    CALL  MOVES HALF      t has a half open: 0x40
//     5  t  realloc-undo   0x40 1T    UNDOES  CALL  FAILS           0x40 lives as since event 3
//
// A half stays open until the next CALL of its thread. If that is no second half, the realloc was
// a free. Calls on virtual memory and on pools are none: an allocator makes them inside of one.
// What the program did and what an end means (exit, a lost free) is engine/replay/lives.h's.
#pragma once

#include "trace/trace.h"

enum effect {
	EFFECT_BEGINS = 1 << 0,   // a block at the event's address, of its size
	EFFECT_ENDS = 1 << 1,     // the block at effect_ended
	EFFECT_MOVES = 1 << 2,    // a realloc: what begins goes on with what ended
	EFFECT_HALF = 1 << 3,     // the first half of one: what it ended may be undone
	EFFECT_UNDOES = 1 << 4,   // its thread's open half, if that is of the same address
	EFFECT_DESTROYS = 1 << 5, // all blocks of the event's heap end
	EFFECT_FAILS = 1 << 6,    // the program got no memory; size is what it asked for
	EFFECT_CALL = 1 << 7,     // on malloc's heaps: closes the half that its thread left open
};

// Bits of enum effect; 0 for virtual memory.
// A table and no branch: this is asked for each event of each pass.
static inline unsigned effect_of(unsigned kind)
{
	static const uint8_t effects[] = {
		[TRACE_MALLOC] = EFFECT_BEGINS | EFFECT_CALL,
		[TRACE_CALLOC] = EFFECT_BEGINS | EFFECT_CALL,
		[TRACE_ALIGNED] = EFFECT_BEGINS | EFFECT_CALL,
		[TRACE_FREE] = EFFECT_ENDS | EFFECT_CALL,
		[TRACE_REALLOC] = EFFECT_ENDS | EFFECT_BEGINS | EFFECT_MOVES | EFFECT_CALL,
		[TRACE_REALLOC_FREE] = EFFECT_ENDS | EFFECT_MOVES | EFFECT_HALF | EFFECT_CALL,
		[TRACE_REALLOC_ALLOC] = EFFECT_BEGINS | EFFECT_MOVES | EFFECT_CALL,
		[TRACE_REALLOC_UNDO] = EFFECT_UNDOES | EFFECT_FAILS | EFFECT_CALL,
		[TRACE_REALLOC_FAILED] = EFFECT_FAILS | EFFECT_CALL,
		[TRACE_FAILED] = EFFECT_FAILS | EFFECT_CALL,
		[TRACE_HEAP_ALLOC] = EFFECT_BEGINS,
		[TRACE_HEAP_FREE] = EFFECT_ENDS,
		[TRACE_HEAP_RESET] = EFFECT_DESTROYS,
		[TRACE_HEAP_DESTROY] = EFFECT_DESTROYS,
		[TRACE_BEFORE] = EFFECT_BEGINS,
	};

	return kind < sizeof effects ? effects[kind] : 0;
}

// A free that a heap of Windows refused, as the block is not its: both halves of a realloc of 0
// bytes that failed. It was not for want of memory, though it has EFFECT_FAILS.
static inline bool effect_refuses(const struct trace_event *event)
{
	return event->kind == TRACE_REALLOC_FAILED && event->heap && event->size == 0;
}

#define EFFECT_IN_PLACE_ONLY 0x10u // HEAP_REALLOC_IN_PLACE_ONLY, of a call on a Windows heap

// A realloc that may not move its block and found no room after it. Whether there is some is what
// the program asked: it was not for want of memory either.
static inline bool effect_stays(const struct trace_event *event)
{
	return effect_of(event->kind) & EFFECT_FAILS && event->heap &&
	       event->flags & EFFECT_IN_PLACE_ONLY;
}

// A call that returned no memory, for all that is known because there was none.
static inline bool effect_lacks(const struct trace_event *event)
{
	return effect_of(event->kind) & EFFECT_FAILS && !effect_refuses(event) &&
	       !effect_stays(event);
}

// The address of the block that an event with EFFECT_ENDS ends.
static inline uint64_t effect_ended(const struct trace_event *event)
{
	return event->kind == TRACE_REALLOC ? event->old_address : event->address;
}
