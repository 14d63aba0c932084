// outside: memory that processes asked the system for themselves, and which no allocator that is
// seen has: a runtime's heap, a pool, shared memory. What is inside of it is in no figure of the
// heap.
#pragma once

#include "engine/space/space.h"
#include "report/ask/query_context.h"

// Of one process, at the moment when most was committed.
struct outside {
	uint64_t bytes, heap_bytes; // committed: by the program itself, by allocators that are seen
	uint64_t most;              // of one stack
	stack_id stack;             // that one
	const char *heap;           // the runtime's that has most of it; NULL: none that is known
	uint64_t runtime_bytes;     // its
};

// Of the selected processes, each one of which the program's own is 8 MiB or more, and more than
// that of all allocators: there the heap's figures mislead. `totals` are of these processes
// together. Reads the trace to the moment, unless it has an index; not at all where less than 8 MiB
// were committed.
void outside_find(struct query_context *asked, const struct space_totals *totals,
		  void (*tell)(void *context, process_id process, const struct outside *outside),
		  void *context);
