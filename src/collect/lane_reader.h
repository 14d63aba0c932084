// lane_reader: takes a lane's bytes apart, record by record, into items.
//
// Pure but for the stacks, which it interns as it meets them. Bounded: it reads nothing beyond
// what the guest published, gives up on the first record that cannot be, and then stays broken: a
// guest can overwrite its own lanes, and what follows a damaged record means nothing.
//
// The state belongs to the lane and survives a change of its thread (wire/lane_event.h).
#ifndef COLLECT_LANE_READER_H
#define COLLECT_LANE_READER_H

#include "collect/frame_map.h"
#include "collect/interner.h"
#include "trace/trace.h"
#include "wire/lane_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of items: enum lane_type up to LANE_FAILED, and these.
enum lane_item_kind {
	LANE_ITEM_THREAD = 16, // `tid`; the name's 16 bytes in address and size
	LANE_ITEM_MARK = 17,   // `detail`: whose mark
	LANE_ITEM_FORK = 18,   // `detail`: which fork
	LANE_ITEM_START = 19,  // the image begins
	LANE_ITEM_END = 20,    // its process has ended
	LANE_ITEM_NAME = 21,   // the thread's name, by the program: 16 bytes in address and size
	LANE_ITEM_POOL = 22,   // with enum lane_pool added: a call on a block of `pool`
};

struct lane_item {
	uint64_t time_ns;
	uint64_t address;
	uint64_t size;
	uint64_t owner; // the sequence with which the lane took the address's slot; 0: it had it
	union {
		stack_id stack;
		uint32_t tid;
		uint32_t detail;
	};
	uint32_t run;  // the merge's
	uint32_t pool; // LANE_ITEM_POOL + …
	uint8_t kind;
	uint8_t align_log2;
};

// Is it a call on a block of a pool?
static inline bool lane_item_is_pool(const struct lane_item *item)
{
	return item->kind > LANE_ITEM_POOL;
}

// The slot by which the item is put into order.
static inline uint32_t lane_item_slot(const struct lane_item *item)
{
	return lane_item_is_pool(item) ? lane_pool_slot(item->pool) : lane_slot(item->address);
}

struct lane_reader {
	const uint8_t *ring; // mapped twice, end to end; borrowed
	uint64_t mask;       // ring size - 1
	uint64_t at;         // bytes taken apart so far
	uint64_t time_ns;
	uint64_t address;
	struct frame_map *frames;  // borrowed
	struct interner *interner; // borrowed
	stack_id *path;            // the current stack: stack ids, outermost first
	size_t path_capacity;
	uint32_t depth;
	uint8_t stack_flags; // enum trace_stack_flag
	bool free_stacks;    // frees have stacks
	bool broken;
};

void lane_reader_init(struct lane_reader *reader, const uint8_t *ring, uint32_t ring_bytes,
		      struct frame_map *frames, struct interner *interner, bool free_stacks);
void lane_reader_fini(struct lane_reader *reader); // accepts { 0 }

// Decode from reader->at up to `limit`, which the guest published, into items[0..max). Returns
// their number: fewer than `max` when the limit is reached or the lane is broken.
size_t lane_reader_decode(struct lane_reader *reader, uint64_t limit, struct lane_item *items,
			  size_t max);

#endif
