// alive: the blocks that live, by place, in one table.
//
// A *key* is 64 bits that name a place: which heap, which address (alive_key). What is kept of a
// block is 64 bits too: the step that began it, and its cell. 16 bytes a slot; four slots are a
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
#ifndef ENGINE_ALIVE_H
#define ENGINE_ALIVE_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ALIVE_PARTS = 64, ALIVE_CELL_BITS = 28, ALIVE_SPACES = 0xfffe, ALIVE_BUCKET = 4 };

struct alive_slot {
	uint64_t key; // 0: free
	uint64_t value;
};

struct alive {
	struct mem_area area;
	struct alive_slot *slots; // ALIVE_BUCKET for each bucket
	size_t buckets;           // below 2^32
	size_t count;             // of keys, with those in `rest`
	struct alive_slot *rest;
	size_t rest_count, rest_capacity;
	uint64_t moves; // of keys, to make room for others; what that took is no more than this
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

// Where a hash belongs among so many buckets: in one of two. Each rises with some bits of the hash,
// so that a table is put into a larger one from beginning to end.
static inline size_t alive_home(uint64_t hash, size_t buckets)
{
	return (hash & UINT32_MAX) * buckets >> 32;
}

static inline size_t alive_other(uint64_t hash, size_t buckets)
{
	return (hash >> 26 & UINT32_MAX) * buckets >> 32;
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
struct alive_slot *alive_find(const struct alive *alive, uint64_t key);

// Room for so many keys in a table that has none, so that it need not grow.
void alive_reserve(struct alive *alive, size_t count);

// The slot of a key, new (value 0) or known.
struct alive_slot *alive_put(struct alive *alive, uint64_t key, bool *added);

// Whether the next alive_put of a new key makes the table grow, and to how many bytes it would.
bool alive_is_full(const struct alive *alive);
uint64_t alive_next_bytes(const struct alive *alive);

// The slot must have come from alive_find, alive_put or alive_next, with no change in between.
// Another key may move into it.
void alive_remove(struct alive *alive, struct alive_slot *slot);

// The key will be looked for soon.
void alive_expect(const struct alive *alive, uint64_t key);

// Go through all keys, in the order of their slots, beginning with *at 0. NULL: that was all.
struct alive_slot *alive_next(const struct alive *alive, size_t *at);

#endif
