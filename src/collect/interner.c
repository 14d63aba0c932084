#include "collect/interner.h"

#include "base/mem.h"
#include "wire/compiler.h"

#include <string.h>

enum { INDEX_BITS_FIRST = 12 };

void interner_init(struct interner *interner, struct writer *writer)
{
	memset(interner, 0, sizeof *interner);
	interner->writer = writer;
	interner->index_capacity = (size_t)1 << INDEX_BITS_FIRST;
	interner->index_shift = 64 - INDEX_BITS_FIRST;
	interner->index = mem_alloc(interner->index_capacity, sizeof *interner->index);
	interner->nodes = mem_grow(NULL, &interner->nodes_capacity, 1, sizeof *interner->nodes);
	interner->nodes[0] = (struct interner_node){ 0 };
	interner->nodes_count = 1;
}

void interner_fini(struct interner *interner)
{
	mem_free(interner->nodes);
	mem_free(interner->index);
	memset(interner, 0, sizeof *interner);
}

static inline size_t place_of(const struct interner *interner, uint32_t parent, frame_id frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;

	key ^= key >> 29;
	return (size_t)(key * 0x9e3779b97f4a7c15u >> interner->index_shift);
}

// Twice the places; nodes stay where they are.
static COLD void grow_index(struct interner *interner)
{
	size_t capacity = interner->index_capacity * 2;
	size_t mask = capacity - 1;

	mem_free(interner->index);
	interner->index = mem_alloc(capacity, sizeof *interner->index);
	interner->index_capacity = capacity;
	interner->index_shift--;
	for (size_t id = 1; id < interner->nodes_count; id++) {
		const struct interner_node *node = &interner->nodes[id];
		size_t at = place_of(interner, node->parent, node->frame);

		while (interner->index[at] != 0)
			at = (at + 1) & mask;
		interner->index[at] = (uint32_t)id;
	}
}

static COLD stack_id add_node(struct interner *interner, size_t at, struct interner_node node,
			      stack_id parent, uint8_t flags)
{
	stack_id id = writer_add_stack(interner->writer, parent, node.frame, flags);

	// A writer that has failed gives no more ids. Nothing will be written either.
	if (id != interner->nodes_count)
		return parent;
	if (interner->nodes_count == interner->nodes_capacity)
		interner->nodes = mem_grow(interner->nodes, &interner->nodes_capacity,
					   interner->nodes_count + 1, sizeof *interner->nodes);
	interner->nodes[interner->nodes_count++] = node;
	interner->index[at] = id;
	if (interner->nodes_count > interner->index_capacity / 2)
		grow_index(interner);
	return id;
}

stack_id interner_push(struct interner *interner, stack_id parent, frame_id frame, uint8_t flags)
{
	struct interner_node node = { parent, frame };
	size_t mask = interner->index_capacity - 1;
	size_t at;

	if (parent == 0 && flags != 0)
		node.parent = UINT32_MAX - flags;
	for (at = place_of(interner, node.parent, frame);; at = (at + 1) & mask) {
		uint32_t id = interner->index[at];

		if (id == 0)
			return add_node(interner, at, node, parent, flags);
		if (interner->nodes[id].parent == node.parent && interner->nodes[id].frame == frame)
			return id;
	}
}

frame_id interner_frame(const struct interner *interner, stack_id stack)
{
	ASSERT(stack < interner->nodes_count);
	return interner->nodes[stack].frame;
}

size_t interner_count(const struct interner *interner)
{
	return interner->nodes_count - 1;
}
