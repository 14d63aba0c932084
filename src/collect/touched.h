// touched: which lane has touched which slot in a tick, and where two have.
//
// Within one tick the clock does not say which of two lanes came first. Where no slot of addresses
// was touched by both, it does not matter, and both may go on at once. So before that each lane's
// records of the tick are looked through (lane_reader_skim) and their slots noted here. A table of
// 32-bit words by slot is not cleared from check to check: each word has the number of its check in
// its upper 19 bits, so an older one counts as empty. For example in check 5, lane 2 touches slot
// 9, then lane 3 does:
//
//     touched_add(9, mark of lane 2)    word 5 << 13 | 2            false
//     touched_add(9, mark of lane 3)    the same, and CONTESTED     true
//     touched_add(9, mark of lane 2)    the same                    false: the first one is lane 2
#pragma once

#include "wire/lane_event.h"

#include <stdbool.h>
#include <stdint.h>

// What is noted of a slot: the check's number, whether two lanes touch it, the first one.
enum { TOUCHED_LANE = 0xfff, TOUCHED_CONTESTED = 0x1000, TOUCHED_SHIFT = 13 };

struct touched {
	uint32_t *slots; // LANE_SLOTS; made at the first check
	uint32_t check;  // the number of the present one
};

// Begin a check: nobody has touched anything.
void touched_begin(struct touched *touched);
void touched_fini(struct touched *touched); // accepts { 0 }

// What lane `lane` writes where it is the first.
static inline uint32_t touched_mark(const struct touched *touched, uint32_t lane)
{
	return touched->check << TOUCHED_SHIFT | lane;
}

// The lane of `mark` touches `slot`. True if another one has.
static inline bool touched_add(struct touched *touched, uint32_t slot, uint32_t mark)
{
	uint32_t *word = &touched->slots[slot];

	if (*word == mark)
		return false;
	if (*word >> TOUCHED_SHIFT != touched->check) {
		*word = mark;
		return false;
	}
	*word |= TOUCHED_CONTESTED;
	return ((*word ^ mark) & TOUCHED_LANE) != 0;
}

static inline bool touched_is_contested(const struct touched *touched, uint32_t slot)
{
	return touched->slots[slot] & TOUCHED_CONTESTED;
}
