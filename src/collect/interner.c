#include "collect/interner.h"

#include "base/mem.h"
#include "wire/compiler.h"

#include <string.h>

enum { BITS_FIRST = 10 };

static void set_capacity(struct interner *interner, unsigned bits)
{
	interner->buckets_count = (size_t)1 << bits;
	interner->shift = 32 - bits;
	interner->buckets = mem_map(interner->buckets_count * sizeof *interner->buckets);
}

void interner_init(struct interner *interner, struct writer *writer)
{
	memset(interner, 0, sizeof *interner);
	interner->writer = writer;
	set_capacity(interner, BITS_FIRST);
}

void interner_fini(struct interner *interner)
{
	mem_unmap(interner->buckets, interner->buckets_count * sizeof *interner->buckets);
	memset(interner, 0, sizeof *interner);
}

// The bucket behind `bucket`.
static struct interner_bucket *next_of(const struct interner *interner,
				       struct interner_bucket *bucket)
{
	size_t at = (size_t)(bucket - interner->buckets) + 1;

	return &interner->buckets[at & (interner->buckets_count - 1)];
}

// Put a stack that is not there.
static void put(struct interner *interner, uint64_t key, uint32_t hash, stack_id id)
{
	struct interner_bucket *bucket = interner_bucket(interner, hash);
	size_t at = 0;

	while (bucket->ids[INTERNER_SLOTS - 1] != 0)
		bucket = next_of(interner, bucket);
	while (bucket->ids[at] != 0)
		at++;
	bucket->keys[at] = key;
	bucket->hashes[at] = hash;
	bucket->ids[at] = id;
}

// Twice the places.
static COLD void grow(struct interner *interner)
{
	struct interner_bucket *old = interner->buckets;
	size_t old_count = interner->buckets_count;

	ASSERT(interner->shift > 1);
	set_capacity(interner, 32 - interner->shift + 1);
	for (size_t i = 0; i < old_count; i++) {
		for (size_t at = 0; at < INTERNER_SLOTS && old[i].ids[at] != 0; at++)
			put(interner, old[i].keys[at], old[i].hashes[at], old[i].ids[at]);
	}
	mem_unmap(old, old_count * sizeof *old);
}

stack_id interner_search(struct interner *interner, stack_id parent,
			 const struct interner_push *push, uint8_t flags)
{
	uint64_t key = interner_key(parent, push->frame, flags);
	struct interner_bucket *bucket = interner_bucket(interner, push->hash);
	stack_id id;

	for (size_t at = 0; bucket->ids[at] != 0;) {
		if (bucket->keys[at] == key)
			return bucket->ids[at];
		if (++at == INTERNER_SLOTS) {
			bucket = next_of(interner, bucket);
			at = 0;
		}
	}
	id = writer_add_stack(interner->writer, parent, push->frame, flags);
	put(interner, key, push->hash, id);
	if (++interner->count > interner->buckets_count * INTERNER_SLOTS / 8 * 5)
		grow(interner);
	return id;
}

size_t interner_count(const struct interner *interner)
{
	return interner->count;
}
