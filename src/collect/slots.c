// Each slot has a list of runs, by their owner sequence. For example, slot 5:
//
//     run 1: lane 2, interval 7, 3 events wait
//     run 2: lane 4, interval 8, 1 event
//     run 3: lane 2, interval 9, 2 events
//
// first[5] is 1. The event of lane 4 has run 2, which is not the first, so what is before it in the
// list is looked at: run 1 has events, and lane 2 goes on first. With its third event run 1 is
// taken away, run 2 is the first, and the event of lane 4 can go. Run 3 was added after run 1, the
// last one that its lane had in the slot: the search for its place began there, and not at the
// first.
//
// Numbers of runs are used again; `free` is the list of those. Number 0 is none.
#include "collect/slots.h"

#include "base/mem.h"

#include <string.h>

void slots_fini(struct slots *slots)
{
	MEM_FREE(slots->first, slots->runs);
	memset(slots, 0, sizeof *slots);
}

static uint32_t take_run(struct slots *slots)
{
	uint32_t run = slots->free;

	if (run != 0) {
		ASSERT(run < slots->count);
		slots->free = slots->runs[run].next;
		return run;
	}
	if (slots->count == 0)
		slots->count = 1;
	MEM_ROOM(slots->runs, slots->capacity, slots->count + 1);
	return (uint32_t)slots->count++;
}

// `after` is the run of the same lane in the slot that was added last, or 0: as owner sequences
// rise, the new one is behind it, and mostly right behind it.
uint32_t slots_add(struct slots *slots, uint32_t slot, uint64_t owner, uint32_t lane,
		   uint32_t after)
{
	uint32_t run = take_run(slots);
	uint32_t next;

	ASSERT(slot < LANE_SLOTS);
	if (slots->first == NULL)
		slots->first = mem_alloc(LANE_SLOTS, sizeof *slots->first);
	ASSERT(after == 0 || slots->runs[after].slot == slot);
	slots->clashed |= slots->first[slot] != 0;
	next = after != 0 ? slots->runs[after].next : slots->first[slot];
	while (next != 0 && slots->runs[next].owner <= owner) {
		after = next;
		next = slots->runs[next].next;
	}
	ASSERT(next == 0 ||
	       (slots->runs[next].slot == slot && slots->runs[next].previous == after));
	slots->runs[run] = (struct slots_run){
		.owner = owner, .slot = slot, .next = next, .previous = after, .lane = lane
	};
	if (after != 0)
		slots->runs[after].next = run;
	else
		slots->first[slot] = run;
	if (next != 0)
		slots->runs[next].previous = run;
	return run;
}

void slots_remove(struct slots *slots, uint32_t run)
{
	struct slots_run *gone = &slots->runs[run];

	ASSERT(run != 0 && run < slots->count);
	ASSERT(gone->inner == 0 && gone->outer == 0);
	if (gone->previous != 0)
		slots->runs[gone->previous].next = gone->next;
	else
		slots->first[gone->slot] = gone->next;
	if (gone->next != 0)
		slots->runs[gone->next].previous = gone->previous;
	gone->next = slots->free;
	slots->free = run;
}
