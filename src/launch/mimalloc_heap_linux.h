// mimalloc_heap: the blocks that a stopped process has from mimalloc, read from its memory.
//
// Of mimalloc 2.0.9, be it a library or linked into the program: its own function says its version,
// and another one is refused. All of its memory is in segments, which begin at multiples of 32 MiB
// and bear a word that only this mimalloc writes, the segment's address mixed with a number among
// its variables. A segment begins with a table of its pages; a page has blocks of one size, and
// chains of those that are free.
//
// Nothing that is read is believed: a page's chains must be as long as its counts say and lead to
// its own blocks alone, and a heap must be of the thread whose segments lead to it. What does not
// fit is not guessed at: then no block of mimalloc's is listed, and `heap->but` says why.
//
// One thing no memory tells: where in its block the address is that an aligned allocation gave to
// the program (memalign (4096, …), or new of a type with alignas). Of pages that have such
// blocks, blocks are listed by where they begin, and `heap->inexact` counts them.
#pragma once

#include "launch/glibc_heap_linux.h"

// Add the blocks to those of other allocators, and a word to what they are of. Does nothing where
// there is no mimalloc. No thread may be inside of it.
void mimalloc_heap_read(struct glibc_heap *heap, const struct objects *objects,
			const struct tracee *tracee);
