// musl_heap: the blocks that a stopped process has from musl's malloc, read from its memory.
//
// Of the malloc that musl has since 1.2.1 ("mallocng"). Its variables begin with a secret, which is
// also the first word of each page that describes groups of blocks; so they are found without
// symbols, and so are all pages. A group is a row of up to 32 blocks of one size, with a bit for
// each that is free. Before each block are its number in the group and how much of it was not asked
// for: sizes are those that the program asked for.
//
// Nothing that is read is believed: a group must name who describes it, a block its own group and
// number, and what is in another group's block must be marked as that. What does not fit is not
// guessed at: then nothing is read, and `heap->why` says why.
//
// What musl's linker has for itself is among them, since it is from the same malloc.
#pragma once

#include "launch/glibc_heap_linux.h"

// In the place of glibc_heap_read, where objects_has_musl. No thread may be inside of it. False:
// nothing is known of what it has allocated.
bool musl_heap_read(struct glibc_heap *heap, const struct objects *objects,
		    const struct tracee *tracee);
