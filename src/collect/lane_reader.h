// lane_reader: takes a lane's bytes apart, record by record, into items.
//
// It works in batches: first the bytes of some hundred records are decoded, and the places of
// their stacks are asked for; then the stacks are looked up (lane_path.h).
//
// A loop that allocates and frees one block writes the same two records over and over. Those are
// not decoded but compared, and given as one item, an *echo*, where the caller takes such. A
// row's echo is of any number of its last events, stacks included.
//
// Bounded: it reads nothing beyond what the guest published, gives up on the first record that
// cannot be, and then stays broken: a guest can overwrite its own lanes, and what follows a damaged
// record means nothing.
//
// What is plain goes to rows at once (lane_reader_row.c), where its order needs no care: see
// lane_reader_take_row. Whether it does can be found out without taking anything apart
// (lane_reader_skim.c).
//
// The state belongs to the lane and survives a change of its thread (wire/lane_event.h).
#pragma once

#include "collect/frame_map.h"
#include "collect/lane_path.h"
#include "collect/touched.h"
#include "trace/columns.h"
#include "trace/trace.h"
#include "wire/lane_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of items: enum lane_type up to LANE_FAILED, LANE_VM, and these.
enum lane_item_kind {
	LANE_ITEM_ECHO = 12, // `detail` times the two items right before it (no lane type is 12)
	LANE_ITEM_HEAP =
		14, // from here on of the heap with handle `address`, with `detail` as flags
		    // (no lane type is 14)
	LANE_ITEM_THREAD = 16,   // `tid`; the name's 16 bytes in address and size
	LANE_ITEM_MARK = 17,     // `detail`: whose mark
	LANE_ITEM_FORK = 18,     // `detail`: which fork
	LANE_ITEM_START = 19,    // the image begins
	LANE_ITEM_END = 20,      // its process has ended
	LANE_ITEM_NAME = 21,     // the thread's name, by the program: 16 bytes in address and size
	LANE_ITEM_HEAP_NEW = 22, // the heap with handle `address` was made, with `detail` as flags
	LANE_ITEM_POOL = 23,     // with enum lane_pool added: a call on a block of `pool`
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

// Is it a call on a block, which has its place among those on the same block?
static inline bool lane_item_has_slot(const struct lane_item *item)
{
	return item->kind < LANE_FAILED || item->kind == LANE_VM || lane_item_is_pool(item);
}

// The slot by which the item is put into order.
static inline uint32_t lane_item_slot(const struct lane_item *item)
{
	return lane_item_is_pool(item) ? lane_pool_slot(item->pool) : lane_slot(item->address);
}

// A call on virtual memory that waits to be delivered.
struct lane_reader_call {
	struct lane_vm body;
	bool open; // it has begun; its end was not read yet
};

// A heap's handle, and the flags of calls on it.
struct lane_reader_heap {
	uint64_t handle;
	uint32_t flags;
};

struct lane_reader {
	const uint8_t *ring; // mapped twice, end to end; borrowed
	uint64_t mask;       // ring size - 1
	uint64_t at;         // bytes decoded so far
	uint64_t time_ns;
	uint64_t address;
	struct frame_map *frames;          // borrowed
	struct lane_path_scratch *scratch; // borrowed
	struct lane_path path;
	stack_id stack;   // of the whole path
	bool free_stacks; // frees have stacks
	// Frames of an interpreted language, beside the path: lists of all of them (language.h),
	// outermost first.
	uint32_t *lists;
	size_t lists_count, lists_capacity;
	bool echoes; // LANE_ITEM_ECHO is allowed; the caller's
	bool broken;
	bool edits_wait;      // those of the next row are decoded first and looked up afterwards
	uint32_t edits_pause; // rows to go before they may
	uint32_t echo_wait,
		echo_waits; // rows to go without looking for one; after the next failure
	uint32_t turn;      // LANE_EXTRA_SAMPLE: of the next event; 0: it is none
	bool undone;        // a LANE_REALLOC_UNDO was read; the caller's to clear
	struct lane_reader_heap *heaps; // Windows: by number, from 1
	size_t heaps_count, heaps_capacity;
	struct lane_reader_call *calls; // of the LANE_VM items, in their order
	size_t calls_first, calls_end, calls_capacity;
};

void lane_reader_init(struct lane_reader *reader, const uint8_t *ring, uint32_t ring_bytes,
		      struct frame_map *frames, struct lane_path_scratch *scratch,
		      bool free_stacks);
void lane_reader_fini(struct lane_reader *reader); // accepts { 0 }

// Decode from reader->at up to `limit`, which the guest published, into items[0..max). Returns
// their number: fewer than `max` when the limit is reached or the lane is broken.
size_t lane_reader_decode(struct lane_reader *reader, uint64_t limit, struct lane_item *items,
			  size_t max);

// Events straight from a lane's bytes to a row of the trace's, without items: nearly all that a
// lane alone has.
struct lane_reader_row {
	struct columns_row row; // time included; thread, heap and flags are the caller's
	uint64_t echoes;        // the row's last `echoed` events come so many times again
	uint32_t echoed;
	size_t owners_count; // slots that the lane took with these events
	struct lane_reader_owner {
		uint32_t slot;
		uint64_t owner;
	} owners[COLUMNS_ROW_MAX];
};

// Fill `out` with events from reader->at up to `limit`, as long as they are at one time, of at most
// `limit_ns`, and can be in a row; both halves of a realloc that are side by side are one. A free
// that is taken back is left. Returns whether there are any: all else is lane_reader_decode's.
bool lane_reader_take_row(struct lane_reader *reader, uint64_t limit, uint64_t limit_ns,
			  struct lane_reader_row *out);

// What a lane does up to the end of a tick.
enum lane_reader_skimmed {
	LANE_READER_UNSURE,         // that has to be decoded to be known
	LANE_READER_CONTESTED,      // it touches a slot that another lane has touched
	LANE_READER_ALONE,          // it does not
	LANE_READER_ALONE_TO_LIMIT, // nor up to the limit, before which the tick does not end
};

// Note the slots that records from reader->at up to `limit`, which the guest published, touch up to
// the time `limit_ns`, without decoding them. *end_ns: the lane's time after them.
enum lane_reader_skimmed lane_reader_skim(const struct lane_reader *reader, uint64_t limit,
					  uint64_t limit_ns, struct touched *touched, uint32_t lane,
					  uint64_t *end_ns);

// The time of the record at `at`, which the guest has published, if the lane's time before it is
// `time_ns`.
uint64_t lane_reader_time_at(const struct lane_reader *reader, uint64_t at, uint64_t time_ns);

// Is the next record, if there is one before `limit`, a LANE_REALLOC_UNDO?
bool lane_reader_undoes_next(const struct lane_reader *reader, uint64_t limit);

// The call of the lane's first LANE_VM item. Never NULL while there is one.
const struct lane_reader_call *lane_reader_vm(const struct lane_reader *reader);
struct lane_vm lane_reader_take_vm(struct lane_reader *reader);

// Look whether the end of the last call, which is open, has been published: up to `limit`. The
// position does not change.
bool lane_reader_complete(struct lane_reader *reader, uint64_t limit);
