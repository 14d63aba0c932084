#include "engine/replay/event_bitmap.h"

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

struct event_bitmap {
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

bool event_bitmap_begin(const struct event_bitmap *event_bitmap, uint64_t number)
{
	return has_bit(&event_bitmap->begins, number);
}

bool event_bitmap_end(const struct event_bitmap *event_bitmap, uint64_t number)
{
	return has_bit(&event_bitmap->ends, number);
}

static struct map *find_blocks(struct event_bitmap *event_bitmap, process_id process, heap_id heap)
{
	bool added;
	uint64_t *index = map_put(&event_bitmap->room_of, (uint64_t)process << 32 | heap, &added);

	if (added) {
		event_bitmap->rooms = mem_grow(event_bitmap->rooms, &event_bitmap->rooms_capacity,
					       event_bitmap->rooms_count + 1,
					       sizeof *event_bitmap->rooms);
		event_bitmap->rooms[event_bitmap->rooms_count] =
			(struct room){ .process = process };
		*index = event_bitmap->rooms_count++;
	}
	return &event_bitmap->rooms[*index].blocks;
}

// What the block was to the window. `freed`: a call ended it, at the event given.
static enum query_type classify(const struct event_bitmap *event_bitmap,
				const struct record *record, bool freed, uint64_t number,
				uint64_t time_ns)
{
	bool late = moment_passed(&event_bitmap->window[0], record->number, record->time_ns);
	bool ended = freed && !moment_passed(&event_bitmap->window[1], number, time_ns);

	if (late)
		return ended ? QUERY_AIFI : QUERY_AIFO;
	return ended ? QUERY_AOFI : QUERY_AOFO;
}

// Whether it was there for some part of the window at all.
static bool in_window(const struct event_bitmap *event_bitmap, const struct record *record,
		      bool freed, uint64_t number, uint64_t time_ns)
{
	return !moment_passed(&event_bitmap->window[1], record->number, record->time_ns) &&
	       (!freed || moment_passed(&event_bitmap->window[0], number, time_ns));
}

// All is known of a block. `number` is of the event that ended it, if `freed` or lost.
static void settle(struct event_bitmap *event_bitmap, uint32_t index, bool freed, uint64_t number,
		   uint64_t time_ns)
{
	struct record *record = &event_bitmap->records[index];
	const struct query *query = event_bitmap->query;
	const struct trace_thread *thread = reader_thread(event_bitmap->reader, record->thread);

	if (thread && query_has_process(query, thread->process) &&
	    query_has_thread(query, record->thread) && query_has_heap(query, record->heap) &&
	    query_has_size(query, record->size) &&
	    query_has_lifetime(query, time_ns - record->time_ns) &&
	    (!query->stack || query->stack(query->context, record->stack)) &&
	    (!query->types ||
	     (in_window(event_bitmap, record, freed, number, time_ns) &&
	      (query->types & classify(event_bitmap, record, freed, number, time_ns))))) {
		set_bit(&event_bitmap->begins, record->number);
		if (freed)
			set_bit(&event_bitmap->ends, number);
	}
	record->next_free = event_bitmap->first_free;
	event_bitmap->first_free = index;
}

static uint32_t new_record(struct event_bitmap *event_bitmap)
{
	uint32_t index = event_bitmap->first_free;

	if (index != NOBODY) {
		event_bitmap->first_free = event_bitmap->records[index].next_free;
		return index;
	}
	ASSERT(event_bitmap->records_count < NOBODY);
	event_bitmap->records = mem_grow(event_bitmap->records, &event_bitmap->records_capacity,
					 event_bitmap->records_count + 1,
					 sizeof *event_bitmap->records);
	return (uint32_t)event_bitmap->records_count++;
}

// Put a record at an address; what lived there ended unseen.
static void place(struct event_bitmap *event_bitmap, struct map *blocks, uint64_t address,
		  uint32_t record, const struct trace_event *event)
{
	bool added;
	uint64_t *value = map_put(blocks, address, &added);

	if (!added)
		settle(event_bitmap, (uint32_t)*value, true, event->number, event->time_ns);
	*value = record;
}

static void begin(struct event_bitmap *event_bitmap, struct map *blocks,
		  const struct trace_event *event)
{
	uint32_t index = new_record(event_bitmap);

	event_bitmap->records[index] = (struct record){
		.number = event->number,
		.time_ns = event->time_ns,
		.size = event->size,
		.thread = event->thread,
		.stack = event->stack,
		.heap = event->heap,
	};
	place(event_bitmap, blocks, event->address, index, event);
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

static void end(struct event_bitmap *event_bitmap, struct map *blocks,
		const struct trace_event *event, uint64_t address)
{
	uint32_t index = take(blocks, address);

	if (index != NOBODY)
		settle(event_bitmap, index, true, event->number, event->time_ns);
}

static void end_all(struct event_bitmap *event_bitmap, struct map *blocks, bool freed,
		    uint64_t number, uint64_t time_ns)
{
	uint64_t address, index;
	size_t at = 0;

	while (map_next(blocks, &at, &address, &index))
		settle(event_bitmap, (uint32_t)index, freed, number, time_ns);
	map_clear(blocks);
}

static struct half *find_half(struct event_bitmap *event_bitmap, thread_id thread)
{
	while (event_bitmap->halves_count <= thread) {
		event_bitmap->halves =
			mem_grow(event_bitmap->halves, &event_bitmap->halves_capacity,
				 event_bitmap->halves_count + 1, sizeof *event_bitmap->halves);
		event_bitmap->halves[event_bitmap->halves_count++] =
			(struct half){ .record = NOBODY };
	}
	return &event_bitmap->halves[thread];
}

// The first half stands alone: it was a free.
static void close_half(struct event_bitmap *event_bitmap, struct half *half)
{
	if (half->record != NOBODY)
		settle(event_bitmap, half->record, true, half->number, half->time_ns);
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

static void add_event(struct event_bitmap *event_bitmap, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(event_bitmap->reader, event->thread);
	struct half *half;
	struct map *blocks;

	if (!thread || trace_kind_is_vm(event->kind))
		return;
	half = find_half(event_bitmap, event->thread);
	blocks = find_blocks(event_bitmap, thread->process, event->heap);
	if (event->kind == TRACE_REALLOC_UNDO && half->record != NOBODY) {
		place(event_bitmap, blocks, half->address, half->record, event);
		half->record = NOBODY;
		return;
	}
	close_half(event_bitmap, half);
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_BEFORE:
	case TRACE_REALLOC_ALLOC:
	case TRACE_HEAP_ALLOC:
		begin(event_bitmap, blocks, event);
		break;
	case TRACE_FREE:
	case TRACE_HEAP_FREE:
		end(event_bitmap, blocks, event, event->address);
		break;
	case TRACE_REALLOC:
		end(event_bitmap, blocks, event, event->old_address);
		begin(event_bitmap, blocks, event);
		break;
	case TRACE_REALLOC_FREE:
		begin_half(half, blocks, event);
		break;
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		end_all(event_bitmap, blocks, true, event->number, event->time_ns);
		break;
	}
}

static void end_process(struct event_bitmap *event_bitmap, process_id process, uint64_t time_ns)
{
	for (size_t i = 0; i < event_bitmap->rooms_count; i++)
		if (event_bitmap->rooms[i].process == process)
			end_all(event_bitmap, &event_bitmap->rooms[i].blocks, false, 0, time_ns);
}

static void read_all(struct event_bitmap *event_bitmap, struct progress *progress)
{
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t items = 0;

	reader_rewind(event_bitmap->reader);
	while ((item = reader_next(event_bitmap->reader, &event, &note)) != READER_END) {
		if (item == READER_EVENT)
			add_event(event_bitmap, &event);
		else if (note.kind == TRACE_NOTE_PROCESS_END)
			end_process(event_bitmap, note.process, note.time_ns);
		if (++items % PROGRESS_EVERY == 0)
			progress_update(progress, reader_position(event_bitmap->reader));
	}
	for (size_t i = 0; i < event_bitmap->halves_count; i++)
		close_half(event_bitmap, &event_bitmap->halves[i]);
	for (size_t i = 0; i < event_bitmap->rooms_count; i++)
		end_all(event_bitmap, &event_bitmap->rooms[i].blocks, false, 0,
			moment_duration(event_bitmap->reader));
	reader_rewind(event_bitmap->reader);
}

struct event_bitmap *event_bitmap_new(struct reader *reader, const struct query *query,
				      const struct moment_edge window[2], struct progress *progress)
{
	struct event_bitmap *event_bitmap = mem_alloc(1, sizeof *event_bitmap);

	event_bitmap->reader = reader;
	event_bitmap->query = query;
	event_bitmap->window = window;
	event_bitmap->first_free = NOBODY;
	read_all(event_bitmap, progress);
	for (size_t i = 0; i < event_bitmap->rooms_count; i++)
		map_fini(&event_bitmap->rooms[i].blocks);
	mem_free(event_bitmap->rooms);
	mem_free(event_bitmap->records);
	mem_free(event_bitmap->halves);
	map_fini(&event_bitmap->room_of);
	event_bitmap->rooms = NULL;
	event_bitmap->records = NULL;
	event_bitmap->halves = NULL;
	return event_bitmap;
}

void event_bitmap_free(struct event_bitmap *event_bitmap)
{
	if (!event_bitmap)
		return;
	mem_free(event_bitmap->begins.bytes);
	mem_free(event_bitmap->ends.bytes);
	mem_free(event_bitmap);
}
