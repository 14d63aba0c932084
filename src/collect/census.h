// census: what the kernel says of a process's memory: /proc/PID/smaps, and page by page what is
// resident (PAGEMAP_SCAN where the kernel has it, Linux 6.7, else /proc/PID/pagemap).
//
// The process runs on meanwhile, unless it waits; so a census is not of one instant.
#ifndef COLLECT_CENSUS_H
#define COLLECT_CENSUS_H

#include "collect/file_table.h"

// Fill in resident memory, mappings and pages; the caller gives them back with snapshot_fini. The
// other fields are left alone. False: the process may not be looked at, or is gone.
bool census_take(uint32_t pid, struct file_table *files, struct trace_snapshot *snapshot);

// The highest resident memory so far, bytes (VmHWM); 0: not known.
uint64_t census_highest(uint32_t pid);

#endif
