// reach_scan: finds out which blocks of a process are reachable, from outside.
//
//     stop        all its threads are stopped
//       copy      it is copied (process_copy_linux.h), and goes on
//       read      with a trace that has all that they did: what is reachable, there or in the copy
//     release     they go on; the copy is no more
//
// Which blocks live, and whose each mapping is, is the trace's to say (present.h). Roots are
// the registers of all threads; their stacks, from the stack pointer on; and all memory that may be
// written but what allocators made for blocks, what the recorder mapped, and stacks of threads that
// have ended. In libc's own data a pointer to the inside of a block is none: its lists of free
// memory point to the word before what they mean, which is the end of another block. Pages that
// were never touched are not read.
//
// Memory: 48 bytes for each live block, and 8 for each pointer in one.
#pragma once

#include "collect/collect.h"

// For collect_options. `read` needs the trace as a file.
extern const struct collect_reach reach_scan;
