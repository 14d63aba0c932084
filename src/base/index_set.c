// The set has positions only, of items that the caller keeps: 8 bytes a slot, whatever its key is.
// For example, texts in an array: the slot of "main" holds part of its hash and 7 + 1. A search for
// "main" compares the hash first, and asks the caller only where that is equal whether item 7 is
// "main".
#include "base/index_set.h"

#include "base/mem.h"

// Part of the hash tells most others apart without a look at the item.
struct index_set_slot {
	uint32_t hash;
	uint32_t position; // + 1; 0: free
};

enum { CAPACITY_FIRST = 16, CAPACITY_LARGE = 1 << 16 };

// The slot of the key, or the free one where it belongs. There is always a free one.
// `same` is NULL where slots are moved to a larger table: all are different there, so a free one is
// looked for.
static struct index_set_slot *slot_of(const struct index_set *set, uint32_t hash,
				      index_set_same *same, const void *context, const void *key)
{
	size_t at = hash & (set->capacity - 1);

	for (;; at = (at + 1) & (set->capacity - 1)) {
		struct index_set_slot *slot = &set->slots[at];

		if (slot->position == 0 ||
		    (slot->hash == hash && same && same(context, slot->position - 1, key)))
			return slot;
	}
}

// The slots have 32 bits of their hashes, enough to place them again without a look at the items; a
// table has at most 2^32 slots. To double is to place each item again, at an address of its own: so
// a large one goes at once to the size that it may need.
static void grow(struct index_set *set)
{
	struct index_set_slot *old = set->slots;
	size_t old_capacity = set->capacity;

	set->capacity = old_capacity ? old_capacity * 2 : CAPACITY_FIRST;
	while (old_capacity >= CAPACITY_LARGE && set->capacity / 4 * 3 <= set->most)
		set->capacity *= 2;
	ASSERT(set->capacity > old_capacity);
	set->slots = mem_alloc_table(set->capacity, sizeof *set->slots);
	for (size_t i = 0; i < old_capacity; i++)
		if (old[i].position)
			*slot_of(set, old[i].hash, NULL, NULL, NULL) = old[i];
	mem_free(old);
}

// Both halves of the hash take part, for tables are small and the lower bits decide.
static uint32_t fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

uint32_t index_set_find(const struct index_set *set, uint64_t hash, index_set_same *same,
			const void *context, const void *key)
{
	// One less than no position is none.
	return set->count ? slot_of(set, fold(hash), same, context, key)->position - 1
			  : INDEX_SET_NONE;
}

// Where the key is there already, its old position is returned, and `position` is not used.
uint32_t index_set_put(struct index_set *set, uint64_t hash, index_set_same *same,
		       const void *context, const void *key, uint32_t position)
{
	struct index_set_slot *slot;

	ASSERT(position < INDEX_SET_NONE);
	if (set->count >= set->capacity / 4 * 3)
		grow(set);
	slot = slot_of(set, fold(hash), same, context, key);
	if (slot->position == 0) {
		*slot = (struct index_set_slot){ fold(hash), position + 1 };
		set->count++;
	}
	ASSERT(slot->position > 0);
	return slot->position - 1;
}

uint32_t index_set_find_by(const struct index_set *set, uint32_t number, uint64_t hash,
			   index_set_same *same, const void *context, const void *key)
{
	uint32_t first = number < set->firsts_capacity ? set->firsts[number] : 0;

	if (first == 0)
		return INDEX_SET_NONE;
	if (same(context, first - 1, key))
		return first - 1;
	return index_set_find(set, hash, same, context, key);
}

// Positions of `firsts` are + 1, as in slots; 0: the number is new.
uint32_t index_set_put_by(struct index_set *set, uint32_t number, uint64_t hash,
			  index_set_same *same, const void *context, const void *key,
			  uint32_t position)
{
	uint32_t *first = MEM_REACH(set->firsts, set->firsts_capacity, number);

	ASSERT(position < INDEX_SET_NONE);
	if (*first == 0) {
		*first = position + 1;
		return position;
	}
	if (same(context, *first - 1, key))
		return *first - 1;
	return index_set_put(set, hash, same, context, key, position);
}

uint64_t index_set_bytes(const struct index_set *set)
{
	return set->capacity * sizeof *set->slots + set->firsts_capacity * sizeof *set->firsts;
}

void index_set_fini(struct index_set *set)
{
	MEM_FREE(set->slots, set->firsts);
	*set = (struct index_set){ 0 };
}

// The multiplication moves what differs to the top, and the shift brings it down again: both are
// needed, as the table takes the lower bits.
uint64_t index_set_hash(const uint64_t *numbers, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

uint64_t index_set_hash_text(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}
