// pages: how much of any stretch of a process's memory was resident, from a snapshot.
#pragma once

#include "trace/trace.h"

#include <stddef.h>

// Sums from below. `= { 0 }` is none at all.
struct pages {
	uint64_t *starts, *ends, *sums; // of each range; bytes below its start
	size_t count;
	uint64_t total;
};

void pages_init(struct pages *pages, const struct trace_snapshot *snapshot);
void pages_fini(struct pages *pages);

// Resident bytes in [from, to).
uint64_t pages_between(const struct pages *pages, uint64_t from, uint64_t to);
