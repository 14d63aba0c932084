// interner: gives every distinct stack one number.
//
// Stacks are a tree: a stack is its innermost frame and the stack of the callers. A node costs
// 8 bytes, plus 16 in the index at worst, whatever the depth of the stack it ends. New nodes are
// written to the trace at once. One thread.
#ifndef COLLECT_INTERNER_H
#define COLLECT_INTERNER_H

#include "trace/trace.h"
#include "trace/writer.h"

#include <stddef.h>

struct interner_node {
	uint32_t
		parent; // stack id; for an outermost frame 0, or UINT32_MAX - flags if it has flags
	frame_id frame;
};

struct interner {
	struct writer *writer;       // borrowed
	struct interner_node *nodes; // by stack id; 0 is unused
	uint32_t *index;             // open addressing; 0: free
	size_t nodes_count, nodes_capacity;
	size_t index_capacity; // a power of two
	unsigned index_shift;  // of a 64-bit hash, down to an index
};

void interner_init(struct interner *interner, struct writer *writer);
void interner_fini(struct interner *interner); // accepts { 0 }

// The stack of `frame` called from `parent` (0: nobody). `flags` (enum trace_stack_flag) belong to
// the outermost end and are the same for all stacks above it.
stack_id interner_push(struct interner *interner, stack_id parent, frame_id frame, uint8_t flags);

// The innermost frame of a stack that interner_push returned.
frame_id interner_frame(const struct interner *interner, stack_id stack);

// Distinct stacks so far.
size_t interner_count(const struct interner *interner);

#endif
