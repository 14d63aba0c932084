// interner: gives every distinct stack one number.
//
// Stacks are a tree: a stack is its innermost frame and the stack of the callers. They are found by
// a hash over all frames from the outermost on, so that where a stack lies in the table is known
// before its callers' number is: the places of a whole batch of stacks can be asked for first
// (interner_prefetch) and looked at afterwards, and the waits for memory overlap. The hash only
// says where to look; a stack is known by its callers' number and its frame.
//
// A search begins at the first slot of a cache line, of which there are four, so that nearly all
// end in the line that was asked for.
//
// A stack costs 16 bytes in a table that is between three eighths and three quarters full, whatever
// its depth. New ones are written to the trace at once. One thread.
#ifndef COLLECT_INTERNER_H
#define COLLECT_INTERNER_H

#include "base/mem.h"
#include "trace/trace.h"
#include "trace/writer.h"

#include <stddef.h>

// `key` is the callers << 32 | the frame; the callers of an outermost frame are 0, or UINT32_MAX -
// flags.
struct interner_slot {
	uint64_t key;
	uint32_t hash; // the upper half
	stack_id id;   // 0: free
};

// A stack that was taken apart and not yet looked up.
struct interner_push {
	uint32_t hash;
	frame_id frame;
};

enum { INTERNER_NEAR = 4 }; // slots of a cache line

struct interner {
	struct writer *writer;       // borrowed
	struct interner_slot *slots; // open addressing
	size_t capacity;             // a power of two
	unsigned shift;              // of a 32-bit hash, down to a place
	size_t count;
};

void interner_init(struct interner *interner, struct writer *writer);
void interner_fini(struct interner *interner); // accepts { 0 }

// The hash of no frames at all. `flags` (enum trace_stack_flag) belong to the outermost end and are
// the same for all stacks above it.
static inline uint64_t interner_root(uint8_t flags)
{
	return UINT64_C(0xd6e8feb86659fd93) * (flags + 1u);
}

// The hash of `frame` called from the stack whose hash is `outer`.
static inline uint64_t interner_hash(uint64_t outer, frame_id frame)
{
	uint64_t hash = (outer ^ frame) * UINT64_C(0x9e3779b97f4a7c15);

	return hash ^ hash >> 32;
}

// Where a search for a stack begins: at the first slot of a cache line.
static inline size_t interner_place(const struct interner *interner, uint32_t hash)
{
	return (size_t)(hash >> interner->shift) & ~(size_t)(INTERNER_NEAR - 1);
}

// interner_add will soon be called with this hash.
static inline void interner_prefetch(const struct interner *interner, uint64_t hash)
{
	mem_expect(&interner->slots[interner_place(interner, (uint32_t)(hash >> 32))]);
}

// The stack of `push->frame` called from `parent` (0: nobody). `push->hash` is the upper half of
// its hash.
stack_id interner_add(struct interner *interner, stack_id parent, const struct interner_push *push,
		      uint8_t flags);

// Distinct stacks so far.
size_t interner_count(const struct interner *interner);

#endif
