#include "collect/proc_memory.h"

#include <windows.h>

#include <psapi.h>

bool proc_memory_take(uint32_t pid, struct file_table *files, bool smaps,
		      struct trace_snapshot *snapshot)
{
	(void)pid, (void)files, (void)smaps, (void)snapshot;
	return false; // which pages are resident is not asked here yet
}

uint64_t proc_memory_highest(uint32_t pid)
{
	PROCESS_MEMORY_COUNTERS counters = { 0 };
	HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid);

	if (process == NULL)
		return 0;
	if (!GetProcessMemoryInfo(process, &counters, sizeof counters))
		counters.PeakWorkingSetSize = 0;
	CloseHandle(process);
	return counters.PeakWorkingSetSize;
}
