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
	slots->runs = mem_grow(slots->runs, &slots->capacity, slots->count + 1, sizeof *slots->runs);
	return (uint32_t)slots->count++;
}

uint32_t slots_add(struct slots *slots, uint32_t slot, uint64_t owner, uint32_t lane)
{
	uint32_t run = take_run(slots);
	uint32_t *link;

	ASSERT(slot < LANE_SLOTS);
	if (slots->first == NULL)
		slots->first = mem_alloc(LANE_SLOTS, sizeof *slots->first);
	link = &slots->first[slot];
	while (*link != 0 && slots->runs[*link].owner <= owner)
		link = &slots->runs[*link].next;
	slots->runs[run] = (struct slots_run){
		.owner = owner, .slot = slot, .next = *link, .lane = lane
	};
	*link = run;
	return run;
}

void slots_remove(struct slots *slots, uint32_t run)
{
	struct slots_run *gone = &slots->runs[run];
	uint32_t *link = &slots->first[gone->slot];

	ASSERT(gone->inner == 0 && gone->outer == 0);
	while (*link != run)
		link = &slots->runs[*link].next;
	*link = gone->next;
	gone->next = slots->free;
	slots->free = run;
}
