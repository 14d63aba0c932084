// blocks: the blocks of one process that are alive, by address.
//
// What is side by side in the program's memory is side by side here: addresses fall into
// *regions* of 64 KiB, and each region has a small table of its own, 16 bytes a slot, from an
// eighth to seven eighths full; while there are less than a million blocks, or where `roomy` is
// set, to five eighths, which takes a fifth more memory and finds small blocks side by side up
// to twice as fast. Programs touch neighbours one after the other, so most lookups find the
// table and the slot in a cache, where one large table would miss twice (page and line).
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

enum { BLOCKS_CLASSES = 16, BLOCKS_NEAR_BITS = 10 };

// `address` is one whose place this is. No owner: no block is there, and none in the table.
struct blocks_near_slot {
	uint64_t address;
	struct block block;
};

// Private.
struct blocks_near {
	uint32_t hits, misses; // since it was last asked if it pays
	struct blocks_near_slot slots[1 << BLOCKS_NEAR_BITS];
};

struct blocks {
	struct blocks_region *regions; // private, as all but count is
	size_t capacity;               // of regions; a power of two, or 0
	size_t used;                   // of them, empty ones included
	size_t count;                  // blocks
	bool roomy;                    // the user's, from the beginning on
	uint64_t *huge;                // sizes that have no room in a slot
	size_t huge_count, huge_capacity;

	// Tables of regions are cut from large pieces of memory.
	struct blocks_piece *pieces;
	struct block *fresh; // of the last one, what was not yet cut
	size_t fresh_slots;
	struct block *spare[BLOCKS_CLASSES]; // tables given back, by size

	struct blocks_near *near; // owned; NULL: none
	uint32_t near_in;         // so many calls from now on there is one; 0: never
};

// Where an iteration is. `= { 0 }` is the beginning.
struct blocks_cursor {
	size_t region, slot;
	uint64_t address; // of the block that came last
};

void blocks_fini(struct blocks *blocks);

// Allocators give out again what was freed a moment ago: a compiler's trace finds four fifths of
// its addresses among the last thousand. From now on blocks that were begun or ended last are kept
// near, in 24 KiB of their own, and go to the table when others take their place; where that does
// not pay they are not for a while. All else is as before, but these look into the table alone, and
// blocks_far has to be called before them: blocks_find, blocks_each, blocks_next, and `count`.
void blocks_keep_near(struct blocks *blocks);
void blocks_far(struct blocks *blocks);

// NULL if no block begins at `address`. Valid until the next change of the table.
struct block *blocks_find(const struct blocks *blocks, uint64_t address);

// Where a block was when it was last looked for. It is looked at, and not believed.
struct blocks_hint {
	uint32_t region, slot; // places in the directory and in the region's table
};

// The place of an address among those that are near.
static inline struct blocks_near_slot *blocks_near_slot(struct blocks_near *near, uint64_t address)
{
	uint64_t hash = (address >> 4) * UINT64_C(0x9e3779b97f4a7c15);

	return &near->slots[hash >> (64 - BLOCKS_NEAR_BITS)];
}

// The block near by, which is alive if it has an owner; or NULL.
static inline const struct block *blocks_near(const struct blocks *blocks, uint64_t address)
{
	const struct blocks_near_slot *slot;

	if (!blocks->near)
		return NULL;
	slot = blocks_near_slot(blocks->near, address);
	return slot->address == address ? &slot->block : NULL;
}

// `address` will be looked for soon, and is not near: begin to fetch its place from memory. Where
// there are many regions, theirs have to be fetched before: blocks_expect_region for some dozen
// addresses, and then blocks_expect.
void blocks_expect_region(const struct blocks *blocks, uint64_t address);
struct blocks_hint blocks_expect(const struct blocks *blocks, uint64_t address);

// The block that is in the table now, and where, once that was fetched; NULL: there is none. `hint`
// comes from blocks_expect.
const struct block *blocks_meet(const struct blocks *blocks, uint64_t address,
				struct blocks_hint *hint);

// The block's place; `*added` says whether it is new. The caller must then set `owner` (not 0),
// `site`, and the size. Valid until the next change of the table.
struct block *blocks_put(struct blocks *blocks, uint64_t address, bool *added);

// The same for who has a hint.
struct block *blocks_put_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
			    bool *added);

// Requested bytes, any number. `block` must have come from this table.
uint64_t blocks_size(const struct blocks *blocks, const struct block *block);
void blocks_set_size(struct blocks *blocks, struct block *block, uint64_t size);

// End a block: false if none begins at `address`; else what it was is in `*block`, for its site and
// owner, and its size in `*size`.
bool blocks_take(struct blocks *blocks, uint64_t address, struct block *block, uint64_t *size);
bool blocks_take_at(struct blocks *blocks, uint64_t address, struct blocks_hint hint,
		    struct block *block, uint64_t *size);

// Each block, region after region by rising address, and if `sorted` by rising address within a
// region, too. No changes meanwhile.
void blocks_each(const struct blocks *blocks, bool sorted,
		 void (*each)(void *context, const struct block *block, uint64_t address),
		 void *context);

// Iterate in no particular order; NULL at the end. No changes meanwhile.
const struct block *blocks_next(const struct blocks *blocks, struct blocks_cursor *cursor);
