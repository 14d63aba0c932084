// reach_scan: finds out which blocks of a process are reachable, from outside.
//
//     reach_scan_stop        all its threads are stopped
//       reach_scan_read      with a trace that has all that they did: what is reachable
//     reach_scan_release     they go on
//
// Which blocks live, and whose each mapping is, is the trace's to say (engine/present.h). Roots are
// the registers of all threads; their stacks, from the stack pointer on; and all memory that may be
// written but what allocators made for blocks, what the recorder mapped, and stacks of threads that
// have ended. In libc's own data a pointer to the inside of a block is none: its lists of free
// memory point to the word before what they mean, which is the end of another block. Pages that
// were never touched are not read.
//
// Memory: 48 bytes for each live block, and 8 for each pointer in one.
#ifndef LAUNCH_REACH_SCAN_LINUX_H
#define LAUNCH_REACH_SCAN_LINUX_H

#include "base/err.h"
#include "engine/reach_search.h"

#include <sys/types.h>

struct reach_scan;

// NULL: it cannot be stopped, and runs on.
struct reach_scan *reach_scan_stop(pid_t pid, struct err *err);

// `trace_fd` is that of the trace, as far as it is written; `process` the one that is stopped. Sets
// flags, read_bytes and blocks, which reach_fini gives back.
bool reach_scan_read(struct reach_scan *scan, int trace_fd, process_id process,
		     struct trace_reach *reach, struct err *err);

// Returns how long it was stopped, in nanoseconds.
uint64_t reach_scan_release(struct reach_scan *scan);

#endif
