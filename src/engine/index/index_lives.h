// index_lives: the lives of blocks (lives.h), from a trace and its index side by side.
//
// Which block a call ends is what the index knows already: so no table of living blocks is kept,
// and nothing is looked for in one. A block that ends is made of its cell. For example:
//
//     event                       step   index has         given
//     0  malloc 0x10 16, stack 3     1   cell 1 begins     begin 1: 0x10, 16 bytes, stack 3
//     1  malloc 0x40 8,  stack 5     2   cell 2 begins     begin 2: 0x40, 8 bytes, stack 5
//     2  free 0x10                   3   cell 1 ends, 1    end   1: 0x10, 16 bytes, stack 3
//
// What is given is not all that lives_read gives:
//
//     number       is the step that began the block: it rises as numbers of events do
//     end          of a block that a call ended; not with its process, nor with the trace
//     of an end    the block's time, old address, kind and tag are not known: 0
//
// Memory: one block of steps.
#pragma once

#include "engine/index/index_read.h"
#include "engine/replay/lives.h"

// Whether the index can say it: each end is of a block that is known, and stays one. Not of traces
// with orphans, lost frees, heaps that were destroyed with blocks in them, reallocs in two halves
// that failed; nor of odd ones (index.h).
bool index_lives_knows(const struct index *index);

// Go through all of the trace. `over` is called at the end of a process, and for TRACE_NONE at the
// end of all: what of it still lives has ended, and was not given. False: the index is damaged
// (ERR_FORMAT), cannot be read, or somebody wants to stop; what was given so far counts for
// nothing. The reader is rewound, before and after.
bool index_lives(struct index *index, struct reader *reader, const struct lives_watcher *watcher,
		 void (*over)(void *context, process_id process), struct progress *progress,
		 struct err *err);
