// alive: the blocks that live, by place, in 64 tables that grow apart from each other.
//
// A *key* is 64 bits that name a place: which heap, which address (alive_key). What is kept of a
// block is 64 bits too: the step that began it, and its cell. 16 bytes a slot, at most three
// quarters full, and large tables at least two thirds. A key's table is named by the same bits of
// its hash whatever the capacities, so a table is also a partition: pairing may be done for one at
// a time (index_build.c).
#ifndef ENGINE_ALIVE_H
#define ENGINE_ALIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ALIVE_TABLES = 64, ALIVE_CELL_BITS = 28, ALIVE_SPACES = 0xfffe };

struct alive_slot {
	uint64_t key; // 0: free
	uint64_t value;
};

struct alive_table {
	struct alive_slot *slots;
	size_t capacity; // below 2^32
	size_t count;
};

struct alive {
	struct alive_table tables[ALIVE_TABLES];
};

void alive_fini(struct alive *alive);

// The key of an address below 2^48 in a space below ALIVE_SPACES.
static inline uint64_t alive_key(uint32_t space, uint64_t address)
{
	return (uint64_t)(space + 1) << 48 | address;
}

static inline uint64_t alive_hash(uint64_t key)
{
	uint64_t hash = (key >> 4 ^ key << 60) * UINT64_C(0x9e3779b97f4a7c15);

	return hash ^ hash >> 32;
}

static inline unsigned alive_part(uint64_t hash)
{
	return (unsigned)(hash >> 58);
}

// Where a hash belongs among `capacity` slots. Tables are in the order of their hashes, but for
// collisions, so that one is copied into a larger one from beginning to end.
static inline size_t alive_home(uint64_t hash, size_t capacity)
{
	return (hash & UINT32_MAX) * capacity >> 32;
}

// A block's step and cell in one word.
static inline uint64_t alive_value(uint64_t step, uint32_t cell)
{
	return step << ALIVE_CELL_BITS | cell;
}

static inline uint64_t alive_step(uint64_t value)
{
	return value >> ALIVE_CELL_BITS;
}

static inline uint32_t alive_cell(uint64_t value)
{
	return (uint32_t)value & ((1u << ALIVE_CELL_BITS) - 1);
}

// The slot of a key, or NULL. Valid until the table's next change.
struct alive_slot *alive_find(struct alive_table *table, uint64_t key);

// Room for so many keys in a table that has none. Keys that come in the order of another table's
// slots need it: put into a table that grows, they would all belong to its first slots.
void alive_reserve(struct alive_table *table, size_t count);

// The slot of a key, new (value 0) or known.
struct alive_slot *alive_put(struct alive_table *table, uint64_t key, bool *added);

// Whether the next alive_put of a new key makes the table grow.
bool alive_is_full(const struct alive_table *table);

// The slot must have come from alive_find or alive_put, with no change in between.
void alive_remove(struct alive_table *table, struct alive_slot *slot);

// The key will be looked for soon.
void alive_expect(const struct alive *alive, uint64_t key);

// Bytes of all tables.
uint64_t alive_bytes(const struct alive *alive);

#endif
