// live_table: the blocks that live, by place, in one table.
//
// A *key* is 64 bits that name a place: which heap, which address (live_table_key). What is kept of
// a block is 64 bits too: the step that began it, and its cell. 16 bytes a slot; four slots are a
// bucket, which is a cache line. A key is in one of two buckets that its hash names, where it is
// put into the emptier one. Where both are full, a key moves to its other bucket; what finds no
// place in many moves is kept apart, in `rest` (keys that were made to be so: the table is never
// that full). So looking for a key takes two lines, and removing one leaves all others where they
// are. At most four fifths of the slots are taken, and of a large table at least seven tenths.
//
// The table grows where it is, in small steps, on large pages: it is the largest one of all, and
// read all over.
//
// A key's *part* is named by other bits of its hash than its bucket: pairing may be done for one
// part at a time (index_pair.h).
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LIVE_TABLE_PARTS = 64,      // named by six bits of the hash
	LIVE_TABLE_CELL_BITS = 28,  // of a value, the lowest; above is the step
	LIVE_TABLE_SPACES = 0xfffe, // so that space + 1 is in 16 bits, and a key never 0
	LIVE_TABLE_BUCKET = 4       // slots
};

struct live_table_slot {
	uint64_t key; // 0: free
	uint64_t value;
};

struct live_table {
	struct mem_area area;
	struct live_table_slot *slots; // LIVE_TABLE_BUCKET for each bucket
	size_t buckets;                // below 2^32
	size_t count;                  // of keys, with those in `rest`
	struct live_table_slot *rest;
	size_t rest_count, rest_capacity;
	uint64_t moves; // of keys, to make room for others; what that took is no more than this
};

// Accepts { 0 }, and leaves it.
void live_table_fini(struct live_table *alive);

// The key of an address below 2^48 in a space below LIVE_TABLE_SPACES.
static inline uint64_t live_table_key(uint32_t space, uint64_t address)
{
	return (uint64_t)(space + 1) << 48 | address;
}

// Bits 0 to 31 choose a key's first bucket, 26 to 57 its other one, and 58 to 63 its part.
static inline uint64_t live_table_hash(uint64_t key)
{
	uint64_t hash = (key >> 4 ^ key << 60) * UINT64_C(0x9e3779b97f4a7c15);

	return hash ^ hash >> 32;
}

static inline unsigned live_table_part(uint64_t hash)
{
	return (unsigned)(hash >> 58);
}

// Where a hash belongs among so many buckets: in one of two. Each rises with some bits of the hash,
// so that a table is put into a larger one from beginning to end.
static inline size_t live_table_home(uint64_t hash, size_t buckets)
{
	return (hash & UINT32_MAX) * buckets >> 32;
}

static inline size_t live_table_other(uint64_t hash, size_t buckets)
{
	return (hash >> 26 & UINT32_MAX) * buckets >> 32;
}

// A block's step and cell in one word.
static inline uint64_t live_table_value(uint64_t step, uint32_t cell)
{
	return step << LIVE_TABLE_CELL_BITS | cell;
}

static inline uint64_t live_table_step(uint64_t value)
{
	return value >> LIVE_TABLE_CELL_BITS;
}

static inline uint32_t live_table_cell(uint64_t value)
{
	return (uint32_t)value & ((1u << LIVE_TABLE_CELL_BITS) - 1);
}

// The slot of a key, or NULL. Valid until the table's next change.
struct live_table_slot *live_table_find(const struct live_table *alive, uint64_t key);

// Room for so many keys in a table that has none, so that it need not grow.
void live_table_reserve(struct live_table *alive, size_t count);

// The slot of a key, new (value 0) or known. May move other keys, and the whole table where it
// grows: slots that were given before are not good any more.
struct live_table_slot *live_table_put(struct live_table *alive, uint64_t key, bool *added);

// Whether the next live_table_put of a new key makes the table grow, and to how many bytes it
// would.
bool live_table_is_full(const struct live_table *alive);
uint64_t live_table_next_bytes(const struct live_table *alive);

// The slot must have come from live_table_find, live_table_put or live_table_next, with no change
// in between. Another key may move into it.
void live_table_remove(struct live_table *alive, struct live_table_slot *slot);

// The key will be looked for soon.
void live_table_expect(const struct live_table *alive, uint64_t key);

// Go through all keys, in the order of their slots, beginning with *at 0. NULL: that was all.
struct live_table_slot *live_table_next(const struct live_table *alive, size_t *at);
