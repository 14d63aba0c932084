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
#ifndef RECORDER_ORDER_H
#define RECORDER_ORDER_H

#include "recorder/lane.h"

// True if the slot was taken over: `*seq` is then the new interval.
static inline bool order_touch(const struct lane *lane, uint64_t address, uint64_t *seq)
{
	uint64_t *owner = &lane->owners[lane_slot(address)];
	uint64_t word = __atomic_load_n(owner, __ATOMIC_SEQ_CST);

	if (likely((word & 0xffff) == lane->id))
		return false;
	do {
		*seq = (word >> 16) + 1;
	} while (!__atomic_compare_exchange_n(owner, &word, *seq << 16 | lane->id, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return true;
}

#endif
