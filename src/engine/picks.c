#include "engine/picks.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>

enum { PROGRESS_EVERY = 1 << 14, NOBODY = UINT32_MAX };

// A block that lives, and where it began.
struct record {
	uint64_t number;
	uint64_t time_ns;
	uint64_t size;
	thread_id thread;
	stack_id stack;
	heap_id heap;
	uint32_t next_free; // of a place that is not used
};

// Live blocks of one heap of one process: address -> record.
struct room {
	struct map blocks;
	process_id process;
};

// The first half of a realloc that lies in two parts.
struct half {
	uint32_t record; // NOBODY: none is open
	uint64_t number, time_ns, address;
};

struct bits {
	uint8_t *bytes;
	size_t size, capacity;
};

struct picks {
	struct bits begins, ends;

	// While reading.
	struct reader *reader;
	const struct query *query;
	const struct moment_edge *window;
	struct record *records;
	size_t records_count, records_capacity;
	uint32_t first_free;
	struct room *rooms;
	size_t rooms_count, rooms_capacity;
	struct map room_of;  // process << 32 | heap -> index
	struct half *halves; // by thread
	size_t halves_count, halves_capacity;
};

static void set_bit(struct bits *bits, uint64_t number)
{
	size_t at = (size_t)(number / 8);

	if (at >= bits->size) {
		bits->bytes = mem_grow(bits->bytes, &bits->capacity, at + 1, 1);
		memset(bits->bytes + bits->size, 0, bits->capacity - bits->size);
		bits->size = bits->capacity;
	}
	bits->bytes[at] |= (uint8_t)(1u << number % 8);
}

static bool has_bit(const struct bits *bits, uint64_t number)
{
	return number / 8 < bits->size && bits->bytes[number / 8] >> number % 8 & 1;
}

bool picks_begin(const struct picks *picks, uint64_t number)
{
	return has_bit(&picks->begins, number);
}

bool picks_end(const struct picks *picks, uint64_t number)
{
	return has_bit(&picks->ends, number);
}

static struct map *find_blocks(struct picks *picks, process_id process, heap_id heap)
{
	bool added;
	uint64_t *index = map_put(&picks->room_of, (uint64_t)process << 32 | heap, &added);

	if (added) {
		picks->rooms = mem_grow(picks->rooms, &picks->rooms_capacity,
					picks->rooms_count + 1, sizeof *picks->rooms);
		picks->rooms[picks->rooms_count] = (struct room){ .process = process };
		*index = picks->rooms_count++;
	}
	return &picks->rooms[*index].blocks;
}

// What the block was to the window. `freed`: a call ended it, at the event given.
static enum query_type classify(const struct picks *picks, const struct record *record, bool freed,
				uint64_t number, uint64_t time_ns)
{
	bool late = moment_passed(&picks->window[0], record->number, record->time_ns);
	bool ended = freed && !moment_passed(&picks->window[1], number, time_ns);

	if (late)
		return ended ? QUERY_AIFI : QUERY_AIFO;
	return ended ? QUERY_AOFI : QUERY_AOFO;
}

// Whether it was there for some part of the window at all.
static bool in_window(const struct picks *picks, const struct record *record, bool freed,
		      uint64_t number, uint64_t time_ns)
{
	return !moment_passed(&picks->window[1], record->number, record->time_ns) &&
	       (!freed || moment_passed(&picks->window[0], number, time_ns));
}

// All is known of a block. `number` is of the event that ended it, if `freed` or lost.
static void settle(struct picks *picks, uint32_t index, bool freed, uint64_t number,
		   uint64_t time_ns)
{
	struct record *record = &picks->records[index];
	const struct query *query = picks->query;
	const struct trace_thread *thread = reader_thread(picks->reader, record->thread);

	if (thread && query_has_process(query, thread->process) &&
	    query_has_thread(query, record->thread) && query_has_heap(query, record->heap) &&
	    query_has_size(query, record->size) &&
	    query_has_lifetime(query, time_ns - record->time_ns) &&
	    (!query->stack || query->stack(query->context, record->stack)) &&
	    (!query->types || (in_window(picks, record, freed, number, time_ns) &&
			       (query->types & classify(picks, record, freed, number, time_ns))))) {
		set_bit(&picks->begins, record->number);
		if (freed)
			set_bit(&picks->ends, number);
	}
	record->next_free = picks->first_free;
	picks->first_free = index;
}

static uint32_t new_record(struct picks *picks)
{
	uint32_t index = picks->first_free;

	if (index != NOBODY) {
		picks->first_free = picks->records[index].next_free;
		return index;
	}
	ASSERT(picks->records_count < NOBODY);
	picks->records = mem_grow(picks->records, &picks->records_capacity,
				  picks->records_count + 1, sizeof *picks->records);
	return (uint32_t)picks->records_count++;
}

// Put a record at an address; what lived there ended unseen.
static void place(struct picks *picks, struct map *blocks, uint64_t address, uint32_t record,
		  const struct trace_event *event)
{
	bool added;
	uint64_t *value = map_put(blocks, address, &added);

	if (!added)
		settle(picks, (uint32_t)*value, true, event->number, event->time_ns);
	*value = record;
}

static void begin(struct picks *picks, struct map *blocks, const struct trace_event *event)
{
	uint32_t index = new_record(picks);

	picks->records[index] = (struct record){
		.number = event->number,
		.time_ns = event->time_ns,
		.size = event->size,
		.thread = event->thread,
		.stack = event->stack,
		.heap = event->heap,
	};
	place(picks, blocks, event->address, index, event);
}

// The record at an address, which is taken out; NOBODY if there is none.
static uint32_t take(struct map *blocks, uint64_t address)
{
	uint64_t *value = map_find(blocks, address);
	uint32_t index = value ? (uint32_t)*value : NOBODY;

	if (value)
		map_remove(blocks, address);
	return index;
}

static void end(struct picks *picks, struct map *blocks, const struct trace_event *event,
		uint64_t address)
{
	uint32_t index = take(blocks, address);

	if (index != NOBODY)
		settle(picks, index, true, event->number, event->time_ns);
}

static void end_all(struct picks *picks, struct map *blocks, bool freed, uint64_t number,
		    uint64_t time_ns)
{
	uint64_t address, index;
	size_t at = 0;

	while (map_next(blocks, &at, &address, &index))
		settle(picks, (uint32_t)index, freed, number, time_ns);
	map_clear(blocks);
}

static struct half *find_half(struct picks *picks, thread_id thread)
{
	while (picks->halves_count <= thread) {
		picks->halves = mem_grow(picks->halves, &picks->halves_capacity,
					 picks->halves_count + 1, sizeof *picks->halves);
		picks->halves[picks->halves_count++] = (struct half){ .record = NOBODY };
	}
	return &picks->halves[thread];
}

// The first half stands alone: it was a free.
static void close_half(struct picks *picks, struct half *half)
{
	if (half->record != NOBODY)
		settle(picks, half->record, true, half->number, half->time_ns);
	half->record = NOBODY;
}

static void begin_half(struct half *half, struct map *blocks, const struct trace_event *event)
{
	*half = (struct half){
		.record = take(blocks, event->address),
		.number = event->number,
		.time_ns = event->time_ns,
		.address = event->address,
	};
}

static void add_event(struct picks *picks, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(picks->reader, event->thread);
	struct half *half;
	struct map *blocks;

	if (!thread || trace_kind_is_vm(event->kind))
		return;
	half = find_half(picks, event->thread);
	blocks = find_blocks(picks, thread->process, event->heap);
	if (event->kind == TRACE_REALLOC_UNDO && half->record != NOBODY) {
		place(picks, blocks, half->address, half->record, event);
		half->record = NOBODY;
		return;
	}
	close_half(picks, half);
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_REALLOC_ALLOC:
	case TRACE_HEAP_ALLOC:
		begin(picks, blocks, event);
		break;
	case TRACE_FREE:
	case TRACE_HEAP_FREE:
		end(picks, blocks, event, event->address);
		break;
	case TRACE_REALLOC:
		end(picks, blocks, event, event->old_address);
		begin(picks, blocks, event);
		break;
	case TRACE_REALLOC_FREE:
		begin_half(half, blocks, event);
		break;
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		end_all(picks, blocks, true, event->number, event->time_ns);
		break;
	}
}

static void end_process(struct picks *picks, process_id process, uint64_t time_ns)
{
	for (size_t i = 0; i < picks->rooms_count; i++)
		if (picks->rooms[i].process == process)
			end_all(picks, &picks->rooms[i].blocks, false, 0, time_ns);
}

static void read_all(struct picks *picks, struct progress *progress)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t items = 0;

	reader_rewind(picks->reader);
	while ((item = reader_next(picks->reader, &event, &note)) != READER_END) {
		if (item == READER_EVENT)
			add_event(picks, &event);
		else if (note.kind == TRACE_NOTE_PROCESS_END)
			end_process(picks, note.process, note.time_ns);
		if (++items % PROGRESS_EVERY == 0)
			progress_update(progress, reader_position(picks->reader));
	}
	for (size_t i = 0; i < picks->halves_count; i++)
		close_half(picks, &picks->halves[i]);
	for (size_t i = 0; i < picks->rooms_count; i++)
		end_all(picks, &picks->rooms[i].blocks, false, 0, moment_duration(picks->reader));
	reader_rewind(picks->reader);
}

struct picks *picks_new(struct reader *reader, const struct query *query,
			const struct moment_edge window[2], struct progress *progress)
{
	struct picks *picks = mem_alloc(1, sizeof *picks);

	picks->reader = reader;
	picks->query = query;
	picks->window = window;
	picks->first_free = NOBODY;
	read_all(picks, progress);
	for (size_t i = 0; i < picks->rooms_count; i++)
		map_fini(&picks->rooms[i].blocks);
	mem_free(picks->rooms);
	mem_free(picks->records);
	mem_free(picks->halves);
	map_fini(&picks->room_of);
	picks->rooms = NULL;
	picks->records = NULL;
	picks->halves = NULL;
	return picks;
}

void picks_free(struct picks *picks)
{
	if (!picks)
		return;
	mem_free(picks->begins.bytes);
	mem_free(picks->ends.bytes);
	mem_free(picks);
}
