// blocks: the blocks of one process that are alive, by address.
//
// A hash table with open addressing, 24 bytes a slot and at most three quarters full. Removing
// closes the gap, so there are no tombstones and a table that breathes never needs to be built
// again. `struct blocks b = { 0 };` is an empty table. Any address is allowed, 0 too. One thread.
#ifndef ENGINE_BLOCKS_H
#define ENGINE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
	uint64_t address;
	uint64_t size;  // requested bytes
	uint32_t site;  // who counts it; the engine's own number
	uint32_t owner; // the allocating thread + 1; 0 marks a free slot
};

struct blocks {
	struct block *slots; // private
	size_t capacity;     // a power of two, or 0
	size_t count;
};

void blocks_fini(struct blocks *blocks);

// NULL if no block begins at `address`. Valid until the next change of the table.
struct block *blocks_find(const struct blocks *blocks, uint64_t address);

// `address` will be looked for soon: begin to fetch its place from memory. Tables are larger than
// caches, so asking for a few dozen addresses ahead of time more than halves the cost of a pass.
void blocks_expect(const struct blocks *blocks, uint64_t address);

// The block's place, with address set; `*added` says whether it is new. The caller must then set
// `owner` (not 0) and the rest. Valid until the next change of the table.
struct block *blocks_put(struct blocks *blocks, uint64_t address, bool *added);

// `block` must have come from find or put, with no change in between.
void blocks_remove(struct blocks *blocks, struct block *block);

// Iterate in no particular order: start with *at = 0; NULL at the end. No changes meanwhile.
const struct block *blocks_next(const struct blocks *blocks, size_t *at);

#endif
