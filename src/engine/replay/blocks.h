// blocks: the blocks of one process that are alive, by address.
//
// What is side by side in the program's memory is side by side here: addresses fall into
// *regions* of 64 KiB, and each region has a small table of its own, 16 bytes a slot, from an
// eighth to seven eighths full; up to a million blocks, or where `roomy` is set, to five eighths,
// which takes a fifth more memory and finds small blocks side by side up to twice as fast. When
// the million is reached, tables that are too large for seven are made smaller. Programs touch
// neighbours one after the other, so most lookups find the table and the slot in a cache, where
// one large table would miss twice (page and line).
// Removing closes the gap, so there are no tombstones. A region that is empty gives its table
// back, unless it is a small one: those go when the directory of regions would have to grow.
// Tables that were given back are for other regions; the system has them back with blocks_fini.
//
//     directory (hash of the region)   slots of one region
//     ┌────────────────────────────┐   ┌──────────────────────────────────┐
//     │ region, count, capacity, ──┼──►│ place in the region, size, owner │ …
//     └────────────────────────────┘   └──────────────────────────────────┘
//
// `struct blocks b = { 0 };` is an empty table. Any address is allowed, 0 too. One thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
	uint64_t word;  // private: where in its region it begins, and its size
	uint32_t site;  // who counts it; the engine's own number
	uint32_t owner; // the allocating thread + 1; 0 marks a free slot
};

enum { BLOCKS_CLASSES = 42 }; // capacities of tables

struct blocks {
	struct blocks_region *regions; // private, as all but count is
	size_t capacity;               // of regions; a power of two, or 0
	size_t used;                   // of them, empty ones included
	size_t count;                  // blocks
	bool roomy;                    // the user's, from the beginning on
	bool tight;                    // there are, or lately were, a million blocks
	bool stepped;                  // the same, three million
	uint64_t *huge;                // sizes that have no room in a slot
	size_t huge_count, huge_capacity;

	// Tables of regions are cut from large pieces of memory.
	struct blocks_piece *pieces;
	struct block *fresh; // of the last one, what was not yet cut
	size_t fresh_slots;
	size_t slots;                        // of all pieces
	struct block *spare[BLOCKS_CLASSES]; // tables given back, by size
};

// Where an iteration is. `= { 0 }` is the beginning.
struct blocks_cursor {
	size_t region, slot;
	uint64_t address; // of the block that came last
};

void blocks_fini(struct blocks *blocks);

// NULL if no block begins at `address`. Valid until the next change of the table.
struct block *blocks_find(const struct blocks *blocks, uint64_t address);

// Where a region was when one of its blocks was last looked for. It is looked at, and not believed.
struct blocks_hint {
	uint32_t region; // place in the directory
};
#define BLOCKS_NO_HINT ((struct blocks_hint){ UINT32_MAX })

// `address` will be looked for soon: begin to fetch its place from memory. Where
// there are many regions, theirs have to be fetched before: blocks_expect_region for some dozen
// addresses, and then blocks_expect.
void blocks_expect_region(const struct blocks *blocks, uint64_t address);
struct blocks_hint blocks_expect(const struct blocks *blocks, uint64_t address);

// The block's place; `*added` says whether it is new. The caller must then set `owner` (not 0),
// `site`, and the size. Valid until the next change of the table.
struct block *blocks_put(struct blocks *blocks, uint64_t address, bool *added);

// The same for who has a hint.
struct block *blocks_put_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
			    bool *added);

// A size has 48 bits beside the 16 of the place. From 2^47 on they are a place in `huge`.
static inline bool blocks_is_small(uint64_t size)
{
	return size < UINT64_C(1) << 47;
}

// A block of a small size, which is in no table and has no owner nor site yet.
static inline struct block blocks_small(uint64_t address, uint64_t size)
{
	return (struct block){ .word = (address & 0xffff) | size << 16 };
}

// Requested bytes, any number. `block` must have come from this table.
static inline uint64_t blocks_size(const struct blocks *blocks, const struct block *block)
{
	uint64_t size = block->word >> 16;

	return blocks_is_small(size) ? size : blocks->huge[size - (UINT64_C(1) << 47)];
}

// The same; `block` is one of this table, or will be.
void blocks_set_size(struct blocks *blocks, struct block *block, uint64_t size);

// End a block: false if none begins at `address`; else what it was is in `*block`, for its site and
// owner, and its size in `*size`.
bool blocks_take(struct blocks *blocks, uint64_t address, struct block *block, uint64_t *size);

// The same without the size, which is in `*block` still (blocks_size), for who may put it back.
bool blocks_take_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
		    struct block *block);

// Each block, region after region by rising address, and if `sorted` by rising address within a
// region, too. No changes meanwhile.
void blocks_each(const struct blocks *blocks, bool sorted,
		 void (*each)(void *context, const struct block *block, uint64_t address),
		 void *context);

// Iterate in no particular order; NULL at the end. No changes meanwhile.
const struct block *blocks_next(const struct blocks *blocks, struct blocks_cursor *cursor);
