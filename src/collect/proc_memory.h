// proc_memory: what the kernel says of a process's memory: /proc/PID/smaps, and page by page what
// is resident (PAGEMAP_SCAN where the kernel has it, Linux 6.7, else /proc/PID/pagemap).
//
// smaps is what costs: the kernel looks at what it knows of each page for it (some 30 us a
// megabyte; a small process has some 300 us of text), where the scan reads page tables alone (4 us
// a megabyte). Without it the mappings are those of /proc/PID/maps, and the pages say what of
// each is resident.
//
// The process runs on meanwhile, unless it waits; so a census is not of one instant.
#pragma once

#include "collect/file_table.h"

// Fill in resident memory, mappings and pages; the caller gives them back with snapshot_fini. The
// other fields are left alone. `smaps`: read it in any case; it is where pages cannot be scanned,
// too. False: the process may not be looked at, or is gone.
bool proc_memory_take(uint32_t pid, struct file_table *files, bool smaps,
		      struct trace_snapshot *snapshot);

// The first page of [start, end), whole pages, that is resident or swapped out; `end`, or where
// `pagemap` could not be read: none up to there. `pagemap` is /proc/PID/pagemap. What was never
// touched is passed over by tables of pages, so that 16 TiB of it are microseconds; 4,000 times
// slower where the kernel cannot scan.
uint64_t proc_memory_touched(int pagemap, uint64_t start, uint64_t end);
