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

#include "engine/replay/present.h"

struct chunk_extent {
	struct present_block *blocks; // owned; by address
	uint64_t *starts, *ends;      // of each block's berth
	size_t count;
	bool glibc;
};

// Of the live blocks of malloc, of heaps of Windows, and of the heaps of languages, in a process of
// the trace. They may be gone from the present then (present_take_blocks).
void chunk_extent_init(struct chunk_extent *chunk_extent, struct present *present,
		       const struct reader *reader, process_id process);
void chunk_extent_fini(struct chunk_extent *chunk_extent);
