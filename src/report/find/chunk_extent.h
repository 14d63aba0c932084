// chunk_extent: the place of each live block in its allocator's memory, header and rounding
// included.
//
// glibc's, where no two blocks are closer than glibc could have put them: 8 bytes before the block
// (4 in 32-bit programs), and the whole rounded up to 16, at least 32 (16 and 16 there); a block
// that has a mapping of its own has all of it. Else the allocator is another's, and a block's
// berth is the least distance from any block of its size to the next. Berths never overlap.
// So it is with small blocks of a language's heap, which are in mappings that are not glibc's; its
// large ones are glibc's.
//
// A heap of Windows has 8 bytes before a block, and rounds the whole up to 16 (8 in 32-bit
// programs). It may round more, so these places are the least that a block takes.
#pragma once

#include "base/map.h"
#include "engine/replay/present.h"

// As much of a block as its place takes, and who asks for places: there are millions.
struct chunk_block {
	uint64_t address, size; // requested bytes
	stack_id stack;
	bool in_heap; // of another heap than malloc's
	bool selected, inherited;
	uint8_t cut; // private: how its place is found
};

// How an allocator cuts: bytes before a block, what the whole is rounded up to, and the least.
struct chunk_cut {
	uint64_t header, unit, least;
};

struct chunk_extent {
	struct chunk_block *blocks; // owned; by address
	size_t count;
	process_id process;
	bool glibc;
	// Private: what places are made of.
	struct chunk_cut cut;
	struct map least; // size -> the least distance to the next block
	struct map large; // block -> place in `ranges`
	struct chunk_range *ranges;
	size_t ranges_count, ranges_capacity;
};

// Of the live blocks of malloc, of heaps of Windows, and of the heaps of languages, in a process of
// the trace. They may be gone from the present then (present_take).
void chunk_extent_init(struct chunk_extent *chunk_extent, struct present *present,
		       const struct reader *reader, process_id process);
void chunk_extent_fini(struct chunk_extent *chunk_extent);

struct chunk_place {
	uint64_t start, end;
};

// The place of a block, and where one begins.
struct chunk_place chunk_extent_place(const struct chunk_extent *chunk_extent, size_t block);
uint64_t chunk_extent_start(const struct chunk_extent *chunk_extent, size_t block);
