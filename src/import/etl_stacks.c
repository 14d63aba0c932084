// For example the key K is defined at 5 s as stack A and at 9 s as stack B. An event at 3 s that
// refers to K means A, which is told when the entry is given up; one at 7 s means B, and one at 12
// s has no definition. In the first pass definitions are collected by key in the order of time; in
// the second each key has a place in its list that only moves on, since times do.
//
// A definition of the other sort (`before`) is told when the entry is made: then it is for all that
// come after it, until the next definition.
#include "import/etl_stacks.h"

#include "base/index_set.h"
#include "base/map.h"
#include "base/mem.h"
#include "trace/bytes.h"

struct node {
	uint64_t frame;
	uint32_t callers;
};

struct definition {
	uint64_t time;
	uint32_t node;
	uint32_t next; // of the same key, + 1
	bool before;
};

// `waiting` are references that had no definition after them so far: what is left at the end is
// unresolved.
struct key {
	uint32_t first, last; // definitions, + 1
	uint32_t next;        // the first one that may be meant, + 1
	uint32_t created;     // the node of one that stands before its references; 0: none
	uint64_t waiting;     // references since the last definition
	bool recycled;
};

struct etl_stacks {
	struct node *nodes; // [0] is none
	size_t nodes_count, nodes_capacity;
	struct index_set by_frame;
	struct definition *definitions;
	size_t definitions_count, definitions_capacity;
	struct key *keys;
	size_t keys_count, keys_capacity;
	struct map by_key;
	uint64_t references;
};

struct etl_stacks *etl_stacks_new(void)
{
	struct etl_stacks *stacks = mem_alloc(1, sizeof *stacks);

	stacks->nodes = mem_grow(NULL, &stacks->nodes_capacity, 1, sizeof *stacks->nodes);
	stacks->nodes[stacks->nodes_count++] = (struct node){ 0 };
	return stacks;
}

void etl_stacks_free(struct etl_stacks *stacks)
{
	if (!stacks)
		return;
	MEM_FREE(stacks->nodes, stacks->definitions, stacks->keys);
	index_set_fini(&stacks->by_frame);
	map_fini(&stacks->by_key);
	mem_free(stacks);
}

static bool same_node(const void *context, uint32_t position, const void *key)
{
	const struct node *node = &((const struct etl_stacks *)context)->nodes[position];
	const struct node *wanted = key;

	return node->frame == wanted->frame && node->callers == wanted->callers;
}

// Equal callers and frame are one node: a log has thousands of stacks that end alike.
static uint32_t put_node(struct etl_stacks *stacks, uint32_t callers, uint64_t frame)
{
	struct node node = { .frame = frame, .callers = callers };
	uint64_t pair[2] = { callers, frame };
	uint32_t at = index_set_put(&stacks->by_frame, index_set_hash(pair, 2), same_node, stacks,
				    &node, (uint32_t)stacks->nodes_count);

	ASSERT(at > 0 && at <= stacks->nodes_count);
	if (at == stacks->nodes_count) {
		*MEM_ADD(stacks->nodes, stacks->nodes_count, stacks->nodes_capacity) = node;
	}
	return at;
}

// From the outermost inwards; a frame of 0 is none.
uint32_t etl_stacks_put(struct etl_stacks *stacks, const uint8_t *frames, size_t count,
			unsigned pointer_bytes)
{
	uint32_t node = 0;

	while (count-- > 0) {
		const uint8_t *at = frames + count * pointer_bytes;
		uint64_t frame = pointer_bytes == 4 ? bytes_get_u32(at) : bytes_get_u64(at);

		if (frame)
			node = put_node(stacks, node, frame);
	}
	return node;
}

uint64_t etl_stacks_frame(const struct etl_stacks *stacks, uint32_t node, uint32_t *callers)
{
	ASSERT(node < stacks->nodes_count);
	*callers = stacks->nodes[node].callers;
	ASSERT(*callers <= node); // who called was there first
	return stacks->nodes[node].frame;
}

static struct key *key_of(struct etl_stacks *stacks, uint64_t key)
{
	bool added;
	uint64_t *at = map_put(&stacks->by_key, key, &added);

	if (added) {
		*at = stacks->keys_count;
		*MEM_ADD(stacks->keys, stacks->keys_count, stacks->keys_capacity) =
			(struct key){ 0 };
	}
	return &stacks->keys[*at];
}

// A key with another stack than before was used again.
void etl_stacks_define(struct etl_stacks *stacks, uint64_t key, uint64_t time, uint32_t node,
		       bool before)
{
	struct key *row = key_of(stacks, key);
	uint32_t number = (uint32_t)stacks->definitions_count + 1;

	ASSERT(node < stacks->nodes_count && row->last < number);
	MEM_ROOM(stacks->definitions, stacks->definitions_capacity, number);
	stacks->definitions[stacks->definitions_count++] =
		(struct definition){ .time = time, .node = node, .before = before };
	if (row->last) {
		row->recycled |= stacks->definitions[row->last - 1].node != node;
		stacks->definitions[row->last - 1].next = number;
	} else {
		row->first = row->next = number;
	}
	row->last = number;
	row->waiting = 0;
}

// A reference waits for a definition that comes later, unless the last one was in front of it.
void etl_stacks_refer(struct etl_stacks *stacks, uint64_t key)
{
	struct key *row = key_of(stacks, key);

	stacks->references++;
	if (!row->last || !stacks->definitions[row->last - 1].before)
		row->waiting++;
}

// `next` never goes back: references come in the order of time. A definition of the reference's own
// time is not passed yet, so it counts. Of those that were passed only one that is in front of its
// references (`before`) means anything to later ones, and only until another is passed.
uint32_t etl_stacks_find(struct etl_stacks *stacks, uint64_t key, uint64_t time)
{
	uint64_t *at = map_find(&stacks->by_key, key);
	struct key *row = at ? &stacks->keys[*at] : NULL;

	if (!row)
		return 0;
	ASSERT(*at < stacks->keys_count && row->next <= stacks->definitions_count);
	while (row->next && stacks->definitions[row->next - 1].time < time) {
		const struct definition *passed = &stacks->definitions[row->next - 1];

		row->created = passed->before ? passed->node : 0;
		row->next = passed->next;
	}
	if (row->created)
		return row->created;
	return row->next ? stacks->definitions[row->next - 1].node : 0;
}

// Node 0 is none, and is not counted.
struct etl_stacks_counts etl_stacks_count(const struct etl_stacks *stacks)
{
	struct etl_stacks_counts counts = {
		.references = stacks->references,
		.keys = stacks->keys_count,
		.definitions = stacks->definitions_count,
		.nodes = stacks->nodes_count - 1,
	};

	for (size_t i = 0; i < stacks->keys_count; i++) {
		counts.unresolved += stacks->keys[i].waiting;
		counts.recycled += stacks->keys[i].recycled;
	}
	return counts;
}
