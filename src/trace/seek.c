// Entries are differences to the one before, so an entry takes a dozen bytes or so. For example
// blocks at the bytes 64 and 5000, with 1000 events from 0 on and 900 from 1000 on:
//
//     64      the first: 64, event 0
//     5000    4936 further on, 1000 events further on
//
// An event or a time is found by a search among the blocks of events, which rise by both.
#include "trace/seek.h"

#include "base/sort.h"

#include <stdlib.h>

void seek_fini(struct seek *seek)
{
	mem_free(seek->entries);
	*seek = (struct seek){ 0 };
}

static void push(struct seek *seek, const struct seek_entry *entry)
{
	*MEM_ADD(seek->entries, seek->count, seek->capacity) = *entry;
}

void seek_add(struct seek *seek, uint64_t at, const struct block *block)
{
	push(seek, &(struct seek_entry){
			   .at = at,
			   .type = block->type,
			   .events_count = block->events_count,
			   .first_event = block->first_event,
			   .first_ns = block->first_ns,
			   .last_ns = block->last_ns,
		   });
}

// Event numbers and times may fall from a DEFS block to the EVENTS block after it, whose first
// event is older: so these two are signed. Offsets only rise.
void seek_encode(const struct seek *seek, uint64_t previous, struct bytes *out)
{
	uint64_t at = 0, event = 0, ns = 0;

	bytes_add_varint(out, previous);
	bytes_add_varint(out, seek->count);
	for (size_t i = 0; i < seek->count; i++) {
		const struct seek_entry *entry = &seek->entries[i];

		ASSERT(entry->at > at && entry->last_ns >= entry->first_ns);
		bytes_add_varint(out, entry->type);
		bytes_add_varint(out, entry->at - at);
		bytes_add_signed(out, (int64_t)(entry->first_event - event));
		bytes_add_varint(out, entry->events_count);
		bytes_add_signed(out, (int64_t)(entry->first_ns - ns));
		bytes_add_varint(out, entry->last_ns - entry->first_ns);
		at = entry->at;
		event = entry->first_event;
		ns = entry->first_ns;
	}
}

// Numbers are checked where they are used; only offsets must rise, or a search would go in circles.
bool seek_decode(struct seek *seek, struct bytes_cursor payload, uint64_t *previous)
{
	struct seek_entry entry = { 0 };
	size_t before = seek->count;
	uint64_t count;

	*previous = bytes_next(&payload);
	count = bytes_next(&payload);
	for (uint64_t i = 0; i < count && !payload.bad; i++) {
		uint64_t step, type;

		type = bytes_next(&payload);
		step = bytes_next(&payload);
		entry.first_event += (uint64_t)bytes_next_signed(&payload);
		entry.events_count = bytes_next_u32(&payload);
		entry.first_ns += (uint64_t)bytes_next_signed(&payload);
		entry.last_ns = entry.first_ns + bytes_next(&payload);
		entry.type = (uint16_t)type;
		if (type > UINT16_MAX || step == 0 ||
		    __builtin_add_overflow(entry.at, step, &entry.at))
			payload.bad = true;
		else
			push(seek, &entry);
	}
	if (payload.bad)
		seek->count = before;
	return !payload.bad;
}

SORT_ORDER(compare_entries, struct seek_entry, SORT_RISES(at))

void seek_sort(struct seek *seek)
{
	if (seek->count > 1)
		qsort(seek->entries, seek->count, sizeof *seek->entries, compare_entries);
}

// All entries are looked at: 10 million events have some 300.
size_t seek_find(const struct seek *seek, uint64_t time_ns)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < seek->count; i++)
		if (seek->entries[i].type == BLOCK_EVENTS && seek->entries[i].first_ns <= time_ns)
			found = i;
	return found;
}
