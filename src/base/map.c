// Open addressing: a key is in the first free slot from its home on. Key 0 means a free slot, and
// so the pair with key 0 is kept beside the table.
//
// Removing closes the gap, instead of marking it. For example, of 8 slots, A and B have home 2, C
// has home 3, and D has home 5:
//
//     slot      2  3  4  5
//     holds     A  B  C  D      A is removed: B moves to 2, C to 3, and D stays: 5 is its home
//     then      B  C  -  D
//
// so that a search for C, which begins at 3 and would end at a free slot, still finds it.
#include "base/map.h"

#include "base/mem.h"

#include <string.h>

struct map_slot {
	uint64_t key; // 0: free
	uint64_t value;
};

enum { CAPACITY_FIRST = 16 };

// Where `key` would like to be. Addresses differ in the middle bits, small numbers in the low
// ones; the multiplication brings both to the top.
static size_t home_of(const struct map *map, uint64_t key)
{
	uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);

	mixed ^= mixed >> 32;
	return (size_t)mixed & (map->capacity - 1);
}

// The slot that holds `key`, or the free one where it belongs. There is always a free one.
static struct map_slot *slot_of(const struct map *map, uint64_t key)
{
	size_t at = home_of(map, key);

	while (map->slots[at].key && map->slots[at].key != key)
		at = (at + 1) & (map->capacity - 1);
	return &map->slots[at];
}

// At three quarters, so that a search looks at few slots.
static void grow(struct map *map)
{
	struct map_slot *old = map->slots;
	size_t old_capacity = map->capacity;

	map->capacity = old_capacity ? old_capacity * 2 : CAPACITY_FIRST;
	ASSERT(map->capacity > old_capacity);
	map->slots = mem_alloc(map->capacity, sizeof *map->slots);
	ASSERT((map->capacity & (map->capacity - 1)) == 0);
	for (size_t i = 0; i < old_capacity; i++) {
		if (old[i].key)
			*slot_of(map, old[i].key) = old[i];
	}
	mem_free(old);
}

void map_fini(struct map *map)
{
	mem_free(map->slots);
	*map = (struct map){ 0 };
}

void map_fini_all(struct map *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		map_fini(list[i]);
}

void map_clear(struct map *map)
{
	if (map->slots)
		memset(map->slots, 0, map->capacity * sizeof *map->slots);
	map->count = 0;
	map->zero_used = false;
}

// The value may be written through the pointer; it is gone with the next change.
uint64_t *map_find(const struct map *map, uint64_t key)
{
	struct map_slot *slot;

	if (key == 0)
		return map->zero_used ? (uint64_t *)&map->zero_value : NULL;
	if (map->capacity == 0)
		return NULL;
	slot = slot_of(map, key);
	return slot->key ? &slot->value : NULL;
}

uint64_t *map_put(struct map *map, uint64_t key, bool *added)
{
	struct map_slot *slot = NULL;
	bool is_new;

	if (key == 0) {
		is_new = !map->zero_used;
		if (is_new)
			map->zero_value = 0;
		map->zero_used = true;
	} else {
		// At most three quarters full: a free slot always ends a search.
		if (map->count >= map->capacity / 4 * 3)
			grow(map);
		slot = slot_of(map, key);
		is_new = slot->key == 0;
		if (is_new)
			*slot = (struct map_slot){ .key = key };
	}
	map->count += is_new;
	if (added)
		*added = is_new;
	return slot ? &slot->value : &map->zero_value;
}

// Close the gap at `gap`, so that searches, which stop at a free slot, still find what lies behind.
static void close_gap(struct map *map, size_t gap)
{
	size_t mask = map->capacity - 1;

	for (size_t at = (gap + 1) & mask; map->slots[at].key; at = (at + 1) & mask) {
		size_t home = home_of(map, map->slots[at].key);

		// It may move back only as far as its home.
		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		map->slots[gap] = map->slots[at];
		gap = at;
	}
	map->slots[gap] = (struct map_slot){ 0 };
}

bool map_remove(struct map *map, uint64_t key)
{
	struct map_slot *slot;

	if (key == 0) {
		if (!map->zero_used)
			return false;
		map->zero_used = false;
		map->count--;
		return true;
	}
	if (map->capacity == 0)
		return false;
	slot = slot_of(map, key);
	if (!slot->key)
		return false;
	ASSERT(slot->key == key && map->count > 0);
	close_gap(map, (size_t)(slot - map->slots));
	map->count--;
	return true;
}

size_t map_bytes(const struct map *map)
{
	return map->capacity * sizeof *map->slots;
}

// Place 0 is the pair with key 0, place n is slot n - 1. The map must not change meanwhile.
bool map_next(const struct map *map, size_t *at, uint64_t *key, uint64_t *value)
{
	if (*at == 0) {
		++*at;
		if (map->zero_used) {
			*key = 0;
			*value = map->zero_value;
			return true;
		}
	}
	for (; *at <= map->capacity; ++*at) {
		const struct map_slot *slot = &map->slots[*at - 1];

		if (!slot->key)
			continue;
		*key = slot->key;
		*value = slot->value;
		++*at;
		return true;
	}
	return false;
}
