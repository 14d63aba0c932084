// pools: the pools of one image, which its program named (tidemark.h), as heaps of the trace.
//
// A pool becomes a heap at its first event, under the process that the event belongs to: a forked
// child has its own heaps of its parent's pools.
#pragma once

#include "base/map.h"
#include "trace/writer.h"

struct pools_one {
	uint32_t number; // the guest's
	heap_id heap;    // 0: not in the trace yet
	char *name;      // NULL: never named
};

struct pools {
	struct pools_one *list;
	size_t count, capacity;
	struct map places; // number -> place in the list + 1
};

void pools_fini(struct pools *pools); // accepts { 0 }, which has none

// The guest has a pool `number`; the name is copied.
void pools_add(struct pools *pools, uint32_t number, const void *name, size_t length);

// A child has its parent's pools below `limit`.
void pools_inherit(struct pools *pools, const struct pools *parent, uint32_t limit);

// The heap of pool `number` in `process`, added to the trace when it is new. A number that was
// never named gets a name made of it.
heap_id pools_heap(struct pools *pools, uint32_t number, process_id process, struct writer *writer);
