// map: 64-bit keys to 64-bit values, open addressing, grows by doubling.
//
// `struct map m = { 0 };` is an empty map. Any key is allowed, 0 too. Not ordered. One thread.
//
// A slot has 16 bytes, and at most three quarters of them are used: of a million keys there are 2
// million slots, 32 MiB. While it grows, the old ones and the new ones are there. For example, to
// count by address:
//
//     ++*map_put(&map, address, NULL);       0 at first
//
// Where there is no memory the program ends (mem.h), so nothing here fails.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	struct map_slot *slots; // private
	size_t capacity;        // a power of two, or 0
	size_t count;
	uint64_t zero_value; // the value of key 0, kept apart because 0 marks a free slot
	bool zero_used;
};

// Forget everything; map_clear keeps the memory for what comes. MAP_FINI is for several.
void map_fini(struct map *map);
#define MAP_FINI(...)                                      \
	map_fini_all((struct map *const[]){ __VA_ARGS__ }, \
		     sizeof((struct map *const[]){ __VA_ARGS__ }) / sizeof(struct map *))
void map_fini_all(struct map *const *list, size_t count);
// Costs as much as the map was large at its largest.
void map_clear(struct map *map);

// Borrowed pointer to the value, or NULL. Valid until the next change of the map.
uint64_t *map_find(const struct map *map, uint64_t key);

// The value's place, new (0) if the key was not there; `*added` (may be NULL) says so.
uint64_t *map_put(struct map *map, uint64_t key, bool *added);

// False if it was not there.
// Others may move into the gap: pointers to values are good no longer.
bool map_remove(struct map *map, uint64_t key);

// Bytes of memory used now.
size_t map_bytes(const struct map *map);

// Iterate: start with *at = 0; false at the end.
// The order means nothing, and changes as the map grows. The map must not change meanwhile.
bool map_next(const struct map *map, size_t *at, uint64_t *key, uint64_t *value);
