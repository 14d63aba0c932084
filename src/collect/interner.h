// interner: gives every distinct stack one number.
//
// Stacks are a tree: a stack is its innermost frame and the stack of the callers. They are found by
// a hash over all frames from the outermost on, so that where a stack is in the table is known
// before its callers' number is: the places of a whole batch of stacks can be asked for first
// (interner_prefetch) and looked at afterwards, and the waits for memory overlap. The hash only
// says where to look; a stack is known by its callers' number and its frame.
//
// The table is of buckets of four, a cache line each. A search looks at the bucket that the hash
// names, at its four hashes at once: there is no branch on where in it the stack is, and what it
// finds does not wait for the callers' number, with which it is only compared. A bucket that is
// full goes on in the next one.
//
// A stack costs 16 bytes in a table that is between five sixteenths and five eighths full, whatever
// its depth. The table grows where it is: memory that was never touched before is expensive. New
// stacks are written to the trace at once. One thread.
//
// Where a language is interpreted that is not so (interner_tell_late): of the native stacks of such
// a program most are of no event, but only what ones with the language's frames are made of. From
// there on a stack is written to the trace when an event has it, or one called from it, and has a
// number of its own there (interner_tell).
//
//     uint64_t hash = interner_root(flags);
//     for each frame, outermost first                      their places are asked for
//             hash = interner_hash(hash, frame), interner_prefetch(interner, hash);
//     ...
//     for each frame again                                 and now looked at
//             push = { .hash = hash >> 32, .frame = frame };
//             stack = interner_add(interner, stack, &push, flags);
#pragma once

#include "base/mem.h"
#include "base/sse2.h"
#include "trace/trace.h"
#include "trace/writer.h"
#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

enum { INTERNER_SLOTS = 4 }; // of a bucket

struct interner_bucket {
	uint32_t hashes[INTERNER_SLOTS]; // the upper halves
	stack_id ids[INTERNER_SLOTS];    // 0: free, as all after it are
	// The callers << 32 | the frame; the callers of an outermost frame are 0, or UINT32_MAX -
	// flags.
	uint64_t keys[INTERNER_SLOTS];
};

_Static_assert(sizeof(struct interner_bucket) == 64, "one cache line");

// A stack that was decoded and not yet looked up.
struct interner_push {
	uint32_t hash;
	frame_id frame;
};

// What a stack is made of.
struct interner_row {
	stack_id parent; // 0: none
	frame_id frame;
	uint8_t flags; // if it has no parent
};

struct interner {
	struct writer *writer;           // borrowed
	struct interner_bucket *buckets; // in `area`
	size_t buckets_count;            // a power of two
	unsigned shift;                  // of a 32-bit hash, down to a bucket
	size_t count;                    // stacks
	struct mem_area area;
	uint64_t *keys; // by id, once somebody has asked; NULL
	size_t keys_capacity;
	uint32_t *walked; // frames or stacks of one that is walked, innermost first
	size_t walked_capacity;
	stack_id *told; // by id: the number in the trace; 0: none yet. NULL: they are the same
	size_t told_count, told_capacity;
};

// `writer` is borrowed until interner_fini.
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

// Where a search for a stack begins.
static inline struct interner_bucket *interner_bucket(const struct interner *interner,
						      uint32_t hash)
{
	return &interner->buckets[hash >> interner->shift];
}

// interner_add will soon be called with this hash.
static inline void interner_prefetch(const struct interner *interner, uint64_t hash)
{
	mem_expect(interner_bucket(interner, (uint32_t)(hash >> 32)));
}

// interner_add, where the stack is not the first of its hash in its bucket. Writes a stack that is
// new to the trace, if not later, and may grow the table: buckets that were asked for may then be
// others.
stack_id interner_search(struct interner *interner, stack_id parent,
			 const struct interner_push *push, uint8_t flags);

// What a slot is compared with; the flags count for outermost frames alone.
static inline uint64_t interner_key(stack_id parent, frame_id frame, uint8_t flags)
{
	uint32_t callers = unlikely(parent == 0 && flags != 0) ? UINT32_MAX - flags : parent;

	return (uint64_t)callers << 32 | frame;
}

// The stack of `push->frame` called from `parent` (0: nobody). `push->hash` is the upper half of
// its hash. Never 0, and the same number until interner_fini.
static inline stack_id interner_add(struct interner *interner, stack_id parent,
				    const struct interner_push *push, uint8_t flags)
{
	const struct interner_bucket *bucket = interner_bucket(interner, push->hash);
	__m128i hashes = _mm_load_si128((const __m128i *)(const void *)bucket->hashes);
	__m128i same = _mm_cmpeq_epi32(hashes, _mm_set1_epi32((int)push->hash));
	// One more bit, so that there is one: of the last slot.
	unsigned found = (unsigned)_mm_movemask_ps(_mm_castsi128_ps(same)) |
			 1u << (INTERNER_SLOTS - 1);
	unsigned at = (unsigned)__builtin_ctz(found);

	if (likely(bucket->keys[at] == interner_key(parent, push->frame, flags)))
		return bucket->ids[at];
	return interner_search(interner, parent, push, flags);
}

// What stack `id` is made of. The first call goes through all stacks, and from then on each takes 8
// bytes more.
struct interner_row interner_get(struct interner *interner, stack_id id);

// From here on a new stack is written to the trace when interner_tell is first asked for it. A
// second call does nothing.
void interner_tell_late(struct interner *interner);

// interner_tell of a stack that the trace has not: writes it, after its callers.
stack_id interner_tell_new(struct interner *interner, stack_id id);

// The number that stack `id`, or 0, has in the trace. To be asked for all that is delivered.
static inline stack_id interner_tell(struct interner *interner, stack_id id)
{
	if (likely(interner->told == NULL || id == 0))
		return id;
	return interner->told[id] != 0 ? interner->told[id] : interner_tell_new(interner, id);
}

// The same stack of an allocation that is a sample, drawn at a mean distance of 2^turn, which is
// not 0. Its frames are walked, each time.
stack_id interner_sampled(struct interner *interner, stack_id id, uint32_t turn);
