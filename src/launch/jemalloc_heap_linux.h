// jemalloc_heap: the blocks that a stopped process has from jemalloc, read from its memory.
//
// Of jemalloc 5.3.0, be it a library or linked into the program: its version is a text in it, and
// another one is refused. All of its memory is in a tree of two levels by address, whose root is
// among its variables: where it is there, is found by its form. A leaf says of each page which
// extent has it. An extent is one large block, or a slab of equal small ones, with a bit for each
// that is free. Blocks that a thread has put aside for reuse count as used there; they are in its
// thread-local variables.
//
// Nothing that is read is believed: extents must agree with the tree, slabs with their own count of
// free blocks, and most of what is put aside must be among what is used: the rest is counted in
// `heap->but`. What does not fit is not guessed at: then no block of jemalloc's is listed, and
// `heap->but` says why.
#pragma once

#include "launch/glibc_heap_linux.h"

// Add the blocks to those of glibc's, and a word to what they are of. Does nothing where there is
// no jemalloc. No thread may be inside of it.
void jemalloc_heap_read(struct glibc_heap *heap, const struct objects *objects,
			const struct tracee *tracee);
