// order: who touched an address last: exact order without a clock.
//
// One word per slot of the address space, {seq:48, lane:16}. A thread that touches an address of a
// slot that another lane touched last takes the slot over, and says with which sequence number.
// The numbers of a slot are one total order; with the position in the lane they order all events
// of one address. docs/notes/0001-order-without-clocks.md has the rules, the proof, and what
// breaks when one is left out.
//
// Rules that the callers keep: an allocation is recorded after the real call returned, a free
// before the real call, each published before the hook goes on.
//
// The upper bit of `lane` is none of it: it says that a large block begins in the slot. What
// happens to large blocks has a time of its own (clock.h), so that a peak across threads is
// known to within what small blocks do in one tick. That bit orders nothing.
#pragma once

#include "recorder/lane.h"

enum {
	ORDER_LANE = 0x7fff,          // of a word: the lane that touched the slot last; 0: none has
	ORDER_LARGE = 0x8000,         // of a word: a large block begins in the slot
	ORDER_LARGE_BYTES = 32 << 10, // what makes a block large
	ORDER_PLACE_BYTES = 16,       // apart from each other, blocks begin at least
};

// After the table of owners: where in its LANE_SLOT_BYTES the slot's large block begins.
typedef uint16_t order_place;

_Static_assert((int)SEGMENT_LANES_MAX <= (int)ORDER_LANE, "a lane's number fits");
_Static_assert((int)LANE_SLOT_BYTES <= (int)ORDER_LARGE_BYTES, "no two begin in one slot");
_Static_assert(LANE_SLOT_BYTES / ORDER_PLACE_BYTES <= 1 << 16, "a place fits");

// Where the place of the slot's large block is kept: a table of its own right after the owners.
static inline order_place *order_large_at(const struct lane *lane, uint64_t address)
{
	return (order_place *)(void *)(lane->owners + LANE_SLOTS) + lane_slot(address);
}

// An address by its 16 bytes, modulo what 16 bits hold: within a slot of 16 KiB that is exact.
static inline order_place order_place_of(uint64_t address)
{
	return (order_place)(address / ORDER_PLACE_BYTES);
}

// Whether a large block begins at `address`, or did when something was last said of its slot: of
// two in slots with the same number the later counts.
static inline bool order_is_large(const struct lane *lane, uint64_t address)
{
	uint64_t word = __atomic_load_n(&lane->owners[lane_slot(address)], __ATOMIC_RELAXED);

	return (word & ORDER_LARGE) && __atomic_load_n(order_large_at(lane, address),
						       __ATOMIC_RELAXED) == order_place_of(address);
}

// A large block begins, or ends, at `address`. The owner stays who it is. Any lane may: the bit is
// changed by one instruction.
static inline void order_set_large(const struct lane *lane, uint64_t address, bool begins)
{
	uint64_t *owner = &lane->owners[lane_slot(address)];

	if (begins) {
		__atomic_store_n(order_large_at(lane, address), order_place_of(address),
				 __ATOMIC_RELAXED);
		__atomic_fetch_or(owner, ORDER_LARGE, __ATOMIC_SEQ_CST);
	} else {
		__atomic_fetch_and(owner, ~(uint64_t)ORDER_LARGE, __ATOMIC_SEQ_CST);
	}
}

// Whether the lane touched the address's slot last, and the slot has no large block: then there is
// nothing to say, and nothing to ask. One load.
static inline bool order_is_mine(const struct lane *lane, uint64_t address)
{
	uint64_t word = __atomic_load_n(&lane->owners[lane_slot(address)], __ATOMIC_SEQ_CST);

	return (word & (ORDER_LANE | ORDER_LARGE)) == lane->id;
}

// True if the slot was taken over: `*seq` is then the new interval, one more than the last owner's.
// For example a word of { seq 6, lane 3 } that lane 5 touches becomes { 7, 5 }, and lane 5 writes 7
// before its event: the collector delivers it after all that lane 3 did in interval 6. False: the
// slot was this lane's already, and *seq is not set.
static inline bool order_touch(const struct lane *lane, uint64_t address, uint64_t *seq)
{
	uint64_t *owner = &lane->owners[lane_slot(address)];
	uint64_t word = __atomic_load_n(owner, __ATOMIC_SEQ_CST);

	if (likely((word & ORDER_LANE) == lane->id))
		return false;
	// Another thread may take it over in between: then its word is `word`, and counts.
	do {
		*seq = (word >> 16) + 1;
	} while (!__atomic_compare_exchange_n(owner, &word,
					      *seq << 16 | (word & ORDER_LARGE) | lane->id, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return true;
}
