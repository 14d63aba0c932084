// pages: how much of any stretch of a process's memory was resident, from a snapshot.
//
// The present ranges of a snapshot (struct trace_pages) rise, so their sums from below do: what is
// resident in [from, to) is the sum below `to` less that below `from`, each found by a binary
// search.
#pragma once

#include "trace/trace.h"

#include <stddef.h>

// Sums from below. `= { 0 }` is none at all.
struct pages {
	uint64_t *starts, *ends, *sums; // of each range; bytes below its start
	size_t count;
	uint64_t total;
};

// The snapshot is whole (reader_snapshot_load), and not needed afterwards.
void pages_init(struct pages *pages, const struct trace_snapshot *snapshot);
void pages_fini(struct pages *pages);

// Resident bytes in [from, to).
uint64_t pages_between(const struct pages *pages, uint64_t from, uint64_t to);
