#include "collect/slots.h"

#include "base/mem.h"

#include <string.h>

void slots_fini(struct slots *slots)
{
	mem_free(slots->first);
	mem_free(slots->runs);
	memset(slots, 0, sizeof *slots);
}

static uint32_t take_run(struct slots *slots)
{
	uint32_t run = slots->free;

	if (run != 0) {
		slots->free = slots->runs[run].next;
		return run;
	}
	if (slots->count == 0)
		slots->count = 1;
	slots->runs =
		mem_grow(slots->runs, &slots->capacity, slots->count + 1, sizeof *slots->runs);
	return (uint32_t)slots->count++;
}

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
