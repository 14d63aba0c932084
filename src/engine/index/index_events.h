// index_events: a block of steps, as bytes and back (index_events.c says how).
//
//     index_events_put            a batch into bytes
//     index_events_take_some      the words of some steps
//     index_events_take_ops       the words of its steps; then, as they are needed:
//       index_events_take_begins    by step, where what it ended began
//       index_events_take_far       the same of far ends alone, in a list
//       index_events_take_jumps     numbers of events
//
// Taking trusts nothing but `count`, which the caller holds against the index, and that the head's
// places rise and are within the bytes; PACK_SLACK bytes after them may be read.
#pragma once

#include "engine/index/index_store.h"
#include "engine/index/pack.h"

// Offsets count from the block's first byte.
struct index_events_head {
	uint32_t count;       // of steps
	uint32_t words_count; // at most PACK_WORDS_MAX; 0: steps are words, not numbers of words
	uint32_t ops_at, words_at, near_at, far_at, jumps_at;
	uint16_t stretch_log2;
	uint8_t near_by_begins, far_by_begins; // of what ended there are beginnings, not lifetimes
};

enum { INDEX_EVENTS_MAX = 1 << 16 }; // steps of a block

// An end of what had begun in another stretch.
struct index_ended {
	uint64_t begin;
	uint32_t at, cell; // at: step of the block
};

// An end of what had begun in the same stretch.
struct index_events_near {
	uint16_t at, begin; // steps of the block: the end, and where that began
};

// A place to work in, for index_events_put: its words, and its steps by kind. 832 KB. Lists have
// one place more, which is written to and never read.
struct index_events_work {
	struct pack_words words;
	uint32_t others_count, near_count, far_count;
	uint32_t others[INDEX_EVENTS_MAX + 1]; // what steps did that are no near ends
	struct index_events_near near[INDEX_EVENTS_MAX + 1];
	uint16_t far[INDEX_EVENTS_MAX + 1]; // ends that are not near: steps of the block
};

// `out` has room for index_events_bytes_max. Returns how many they are.
size_t index_events_bytes_max(const struct index_batch *batch);
size_t index_events_put(uint8_t *out, const struct index_batch *batch,
			struct index_events_work *work);

// False: the bytes are no such block, or have a cell that is not there. `near` (NULL: they are not
// wanted) has room for as many as there are steps: near ends, in order.
bool index_events_take_ops(const uint8_t *bytes, const struct index_events_head *head,
			   uint32_t cells_count, uint32_t *ops, struct index_events_near *near,
			   uint32_t *near_count);

// The same of `count` steps from `from` on, the first of a stretch, which there are: those before
// them are stepped over.
bool index_events_take_some(const uint8_t *bytes, const struct index_events_head *head,
			    uint32_t cells_count, uint32_t from, uint32_t count, uint32_t *ops);

// `first`: the block's first step. Orphans have 0 as a beginning. False: a beginning cannot be.
bool index_events_take_begins(const uint8_t *bytes, const struct index_events_head *head,
			      const uint32_t *ops, uint64_t first, uint64_t *begins);

// All that are not near, but orphans; in order. `far` has room for one more than there are steps.
bool index_events_take_far(const uint8_t *bytes, const struct index_events_head *head,
			   const uint32_t *ops, uint64_t first, struct index_ended *far,
			   uint32_t *far_count);

// `count` of them, which follow their number.
bool index_events_take_jumps(const uint8_t *at, const uint8_t *end, struct index_run *jumps,
			     uint32_t count, uint32_t steps);
