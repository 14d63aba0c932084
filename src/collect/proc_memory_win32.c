// Snapshots of resident pages are Linux's alone. The sampler asks Windows for the sum of a process
// (peer_win32.c); which of its pages these are would take a call for each process and a list of its
// own.
#include "collect/proc_memory.h"

bool proc_memory_take(uint32_t pid, struct file_table *files, bool smaps,
		      struct trace_snapshot *snapshot)
{
	(void)pid, (void)files, (void)smaps, (void)snapshot;
	return false; // which pages are resident is not asked here yet
}
