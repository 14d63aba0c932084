// slots: which lanes of an image have undelivered events in one slot of addresses, in order.
//
// A *run* is what one lane has waiting in one ownership interval of one slot (wire/lane_event.h).
// The runs of a slot are kept sorted by their owner sequence. An event may be delivered when no
// other lane has a run before its own. That costs one comparison where one lane alone uses a
// page, which is nearly always.
//
// Events between the two cuts (see merge.h) are *outer*: they hold nothing back by themselves, but
// one on the same address does.
#pragma once

#include "wire/lane_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A run. `inner` and `outer` count its waiting items; a run with neither is removed.
struct slots_run {
	uint64_t owner;
	uint32_t slot;
	uint32_t next;     // in the slot's list, or the free list; 0: last
	uint32_t previous; // in the slot's list; 0: first
	uint32_t lane;
	uint32_t inner, outer; // events waiting
	uint64_t outer_from;   // the first outer one, counted from the stream's first item ever
};

struct slots {
	uint32_t *first;        // LANE_SLOTS; made at first use
	struct slots_run *runs; // 0 is unused
	size_t count, capacity;
	uint32_t free;
	bool clashed; // two runs of one slot were there at once; the caller's to clear
};

void slots_fini(struct slots *slots); // accepts { 0 }

// A run of `lane` for `slot`, with nothing waiting yet. `after` is a run of the same slot with a
// smaller owner (the lane's last one), where the search for its place begins; 0: at the first.
uint32_t slots_add(struct slots *slots, uint32_t slot, uint64_t owner, uint32_t lane,
		   uint32_t after);

// Take away a run with nothing waiting.
void slots_remove(struct slots *slots, uint32_t run);
