// etl_stacks: the stacks of a Windows event log, once each, and what its keys stand for.
//
// A stack is a node of a tree: its innermost frame, and the node of its callers. To save room,
// Windows names a stack by a key, the address of an entry of its cache, and tells the frames only
// when the entry is given up, or at the log's end. Entries are used again: a key has many stacks.
// So a reference means the first definition of its key at or after its time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etl_stacks;

// For one log. One thread; memory grows with frames and definitions that differ.
struct etl_stacks *etl_stacks_new(void);
void etl_stacks_free(struct etl_stacks *stacks); // NULL is allowed

// The node of frames as they are in an event, innermost first; 0: there are none. Equal stacks have
// one node, which is valid until etl_stacks_free.
uint32_t etl_stacks_put(struct etl_stacks *stacks, const uint8_t *frames, size_t count,
			unsigned pointer_bytes);

// A node's frame and its callers (0: none).
uint64_t etl_stacks_frame(const struct etl_stacks *stacks, uint32_t node, uint32_t *callers);

// The first pass, in the order of time. `before`: it is in front of its references.
void etl_stacks_define(struct etl_stacks *stacks, uint64_t key, uint64_t time, uint32_t node,
		       bool before);
void etl_stacks_refer(struct etl_stacks *stacks, uint64_t key);

// The second, in the same order: the node of a reference. 0: the key is not defined.
uint32_t etl_stacks_find(struct etl_stacks *stacks, uint64_t key, uint64_t time);

struct etl_stacks_counts {
	uint64_t references, unresolved; // by the first pass
	uint64_t keys, recycled;         // recycled: with several stacks
	uint64_t definitions, nodes;
};
struct etl_stacks_counts etl_stacks_count(const struct etl_stacks *stacks);
