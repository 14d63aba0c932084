#include "engine/replay/present.h"

#include "base/mem.h"
#include "base/radix.h"
#include "engine/replay/blocks.h"

#include <stdlib.h>

enum { PROGRESS_EVERY = 1 << 16 };

// What is known of a block, besides address and size.
struct detail {
	uint64_t number;
	uint64_t time_ns;
	thread_id thread;
	stack_id stack;
	uint32_t spare; // the next spare one
	bool selected;
	bool inherited;
};

// The first half of a realloc whose second half may still come.
struct half {
	bool active;
	uint64_t address, size;
	struct detail detail;
};

struct present_process {
	struct blocks blocks;
	uint64_t ended_ns; // UINT64_MAX: not yet
	process_id parent;
	bool forked;
};

struct present {
	struct reader *reader;
	struct present_options options;
	struct space *space;
	struct present_process *processes;
	size_t processes_count, processes_capacity;
	struct half *halves; // by thread
	size_t threads_count, threads_capacity;
	struct blocks *heaps; // by heap id
	size_t heaps_count, heaps_capacity;
	struct detail *details; // a block's `site` is its place here
	size_t details_count, details_capacity;
	uint32_t details_spare;
	uint64_t events;
};

void present_free(struct present *present)
{
	if (!present)
		return;
	for (size_t i = 0; i < present->processes_count; i++)
		blocks_fini(&present->processes[i].blocks);
	for (size_t i = 0; i < present->heaps_count; i++)
		blocks_fini(&present->heaps[i]);
	space_free(present->space);
	mem_free(present->processes);
	mem_free(present->halves);
	mem_free(present->heaps);
	mem_free(present->details);
	mem_free(present);
}

// Learn of what the reader has met since the last time.
static void learn(struct present *present)
{
	const struct reader *reader = present->reader;

	while (present->processes_count < reader_processes_count(reader)) {
		const struct trace_process *process =
			reader_process(reader, (process_id)present->processes_count);

		present->processes = mem_grow(present->processes, &present->processes_capacity,
					      present->processes_count + 1,
					      sizeof *present->processes);
		present->processes[present->processes_count++] = (struct present_process){
			.ended_ns = UINT64_MAX,
			.parent = process->parent,
			.forked = process->start == TRACE_START_FORK,
		};
	}
	while (present->threads_count < reader_threads_count(reader)) {
		present->halves = mem_grow(present->halves, &present->threads_capacity,
					   present->threads_count + 1, sizeof *present->halves);
		present->halves[present->threads_count++] = (struct half){ 0 };
	}
	while (present->heaps_count < reader_heaps_count(reader)) {
		present->heaps = mem_grow(present->heaps, &present->heaps_capacity,
					  present->heaps_count + 1, sizeof *present->heaps);
		present->heaps[present->heaps_count++] = (struct blocks){ 0 };
	}
	space_learn(present->space, reader);
}

static uint32_t new_detail(struct present *present, const struct detail *detail)
{
	uint32_t at = present->details_spare;

	if (at) {
		present->details_spare = present->details[at].spare;
	} else {
		size_t need = present->details_count ? present->details_count + 1 : 2;

		ASSERT(need < UINT32_MAX);
		present->details = mem_grow(present->details, &present->details_capacity, need,
					    sizeof *present->details);
		at = (uint32_t)need - 1;
		present->details_count = need;
	}
	present->details[at] = *detail;
	return at;
}

static void drop_detail(struct present *present, uint32_t at)
{
	present->details[at].spare = present->details_spare;
	present->details_spare = at;
}

static void put(struct present *present, struct blocks *blocks, uint64_t address, uint64_t size,
		const struct detail *detail)
{
	bool added;
	struct block *block = blocks_put(blocks, address, &added);

	if (!added)
		drop_detail(present, block->site);
	blocks_set_size(blocks, block, size);
	block->owner = 1;
	block->site = new_detail(present, detail);
}

// The end of a block; what it was goes to `half`, if that is wanted.
static void take(struct present *present, struct blocks *blocks, uint64_t address,
		 struct half *half)
{
	struct block block;
	uint64_t size;
	bool known = blocks_take(blocks, address, &block, &size);

	if (half)
		half->active = known;
	if (!known)
		return;
	if (half) {
		half->address = address;
		half->size = size;
		half->detail = present->details[block.site];
	}
	drop_detail(present, block.site);
}

static bool is_selected(const struct present *present, process_id process,
			const struct trace_event *event)
{
	const struct query *query = present->options.query;

	return !query ||
	       (query_has_process(query, process) && query_has_thread(query, event->thread) &&
		(!query->stack || query->stack(query->context, event->stack)) &&
		(!query->event || query->event(query->event_context, event)));
}

static void allocate(struct present *present, struct blocks *blocks, process_id process,
		     const struct trace_event *event)
{
	struct detail detail = {
		.number = event->number,
		.time_ns = event->time_ns,
		.thread = event->thread,
		.stack = event->stack,
		.selected = is_selected(present, process, event),
	};

	put(present, blocks, event->address, event->size, &detail);
}

static void clear_blocks(struct present *present, struct blocks *blocks)
{
	const struct block *block;
	struct blocks_cursor cursor = { 0 };

	while ((block = blocks_next(blocks, &cursor)))
		drop_detail(present, block->site);
	blocks_fini(blocks);
	*blocks = (struct blocks){ 0 };
}

static void apply_heap(struct present *present, process_id process, const struct trace_event *event)
{
	struct blocks *blocks;

	if (event->heap >= present->heaps_count)
		return;
	blocks = &present->heaps[event->heap];
	switch (event->kind) {
	case TRACE_HEAP_ALLOC:
		allocate(present, blocks, process, event);
		break;
	case TRACE_HEAP_FREE:
		take(present, blocks, event->address, NULL);
		break;
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		clear_blocks(present, blocks);
		break;
	}
}

static void apply_malloc(struct present *present, process_id process,
			 const struct trace_event *event)
{
	struct blocks *blocks = event->heap && event->heap < present->heaps_count
					? &present->heaps[event->heap]
					: &present->processes[process].blocks;
	struct half *half = &present->halves[event->thread];

	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_BEFORE:
	case TRACE_REALLOC_ALLOC:
		allocate(present, blocks, process, event);
		break;
	case TRACE_FREE:
		take(present, blocks, event->address, NULL);
		break;
	case TRACE_REALLOC:
		take(present, blocks, event->old_address, NULL);
		allocate(present, blocks, process, event);
		break;
	case TRACE_REALLOC_FREE:
		take(present, blocks, event->address, half);
		return;
	case TRACE_REALLOC_UNDO:
		if (half->active && half->address == event->address)
			put(present, blocks, half->address, half->size, &half->detail);
		break;
	default:
		break;
	}
	half->active = false;
}

void present_add_event(struct present *present, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(present->reader, event->thread);
	const struct present_options *options = &present->options;
	bool vm = trace_kind_is_vm(event->kind);
	bool failed = event->kind == TRACE_FAILED || event->kind == TRACE_REALLOC_FAILED ||
		      event->kind == TRACE_REALLOC_UNDO;

	if (!thread || event->thread >= present->threads_count ||
	    thread->process >= present->processes_count)
		return;
	present->events = event->number + 1;
	if (options->before && (vm || failed))
		options->before(options->context, present->space, event);
	if (vm)
		space_add_event(present->space, event);
	else if (event->kind >= TRACE_HEAP_ALLOC && event->kind <= TRACE_HEAP_DESTROY)
		apply_heap(present, thread->process, event);
	else
		apply_malloc(present, thread->process, event);
	if (options->after && (vm || failed))
		options->after(options->context, present->space, event);
}

// The blocks that a forked process has from its parent.
static void inherit(struct present *present, process_id id)
{
	struct present_process *process = &present->processes[id];
	struct blocks_cursor cursor = { 0 };
	const struct blocks *blocks;
	const struct block *block;

	if (!process->forked || process->parent >= present->processes_count ||
	    process->parent == id)
		return;
	blocks = &present->processes[process->parent].blocks;
	while ((block = blocks_next(blocks, &cursor))) {
		struct detail detail = present->details[block->site];

		detail.inherited = true;
		put(present, &process->blocks, cursor.address, blocks_size(blocks, block), &detail);
	}
}

// A process and all that descends to the one whose inheritance is wanted.
static bool inherits(const struct present *present, process_id id)
{
	process_id at = present->options.inherits;

	for (size_t hops = 0; at < present->processes_count && hops < present->processes_count;
	     hops++) {
		if (at == id)
			return true;
		if (!present->processes[at].forked)
			return false;
		at = present->processes[at].parent;
	}
	return false;
}

static void end_process(struct present *present, const struct trace_note *note)
{
	struct present_process *process = &present->processes[note->process];

	process->ended_ns = note->time_ns;
	if (present->options.at_exit)
		return;
	space_add_note(present->space, note);
	clear_blocks(present, &process->blocks);
	for (heap_id heap = 0; heap < present->heaps_count; heap++) {
		const struct trace_heap *found = reader_heap(present->reader, heap);

		if (found && heap && found->process == note->process)
			clear_blocks(present, &present->heaps[heap]);
	}
}

void present_add_note(struct present *present, const struct trace_note *note)
{
	if (note->process >= present->processes_count)
		return;
	if (note->kind == TRACE_NOTE_PROCESS_END) {
		end_process(present, note);
		return;
	}
	if (note->kind == TRACE_NOTE_PROCESS_START && inherits(present, note->process))
		inherit(present, note->process);
	space_add_note(present->space, note);
}

// Whether a note lies behind the moment. One that stands right at an exact edge is before it,
// except the end of a process: what lives at a peak or a mark is still to be seen.
static bool passed_by(const struct present *present, const struct trace_note *note)
{
	const struct moment_edge *edge = &present->options.edge;

	if (!edge->exact)
		return note->time_ns > edge->time_ns;
	return present->events >= edge->number && note->kind == TRACE_NOTE_PROCESS_END;
}

static void read_items(struct present *present)
{
	const struct present_options *options = &present->options;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t items = 0;

	while ((item = reader_next(present->reader, &event, &note)) != READER_END) {
		if (event.thread >= present->threads_count || item == READER_NOTE)
			learn(present);
		if (item == READER_EVENT) {
			if (!options->at_exit &&
			    moment_passed(&options->edge, event.number, event.time_ns))
				break;
			if (event.stack >= reader_stacks_count(present->reader))
				event.stack = 0;
			present_add_event(present, &event);
		} else {
			if (!options->at_exit && passed_by(present, &note))
				break;
			present_add_note(present, &note);
		}
		if (options->progress && ++items % PROGRESS_EVERY == 0)
			progress_update(options->progress, reader_position(present->reader));
	}
}

struct present *present_new(struct reader *reader, const struct present_options *options)
{
	struct present *present = mem_alloc(1, sizeof *present);

	present->reader = reader;
	present->options = *options;
	present->options.before = present->options.after = NULL;
	present->space = space_new(NULL);
	learn(present);
	return present;
}

void present_listen(struct present *present, const struct present_options *options)
{
	present->options.before = options->before;
	present->options.after = options->after;
}

void present_put(struct present *present, const struct present_block *block)
{
	const struct trace_event event = {
		.number = block->number,
		.time_ns = block->time_ns,
		.address = block->address,
		.size = block->size,
		.thread = block->thread,
		.stack = block->stack,
		.heap = block->heap,
	};
	struct blocks *blocks;

	if (block->process >= present->processes_count || block->heap >= present->heaps_count)
		return;
	blocks = block->heap ? &present->heaps[block->heap]
			     : &present->processes[block->process].blocks;
	allocate(present, blocks, block->process, &event);
}

void present_settle(struct present *present, uint64_t events)
{
	present->events = events;
	for (process_id id = 0; id < present->processes_count; id++) {
		struct blocks_cursor cursor = { 0 };

		while (blocks_next(&present->processes[id].blocks, &cursor))
			space_claim_whole(present->space, id, cursor.address);
	}
	for (process_id id = 0; id < present->processes_count; id++) {
		struct blocks_cursor cursor = { 0 };

		while (blocks_next(&present->processes[id].blocks, &cursor))
			space_claim(present->space, id, cursor.address);
	}
}

struct present *present_read(struct reader *reader, const struct present_options *options)
{
	struct present *present = present_new(reader, options);

	present_listen(present, options);
	read_items(present);
	present_settle(present, present->events);
	return present;
}

static struct present_block describe(const struct present *present, const struct blocks *blocks,
				     const struct block *block, uint64_t address)
{
	const struct detail *detail = &present->details[block->site];

	return (struct present_block){
		.address = address,
		.size = blocks_size(blocks, block),
		.number = detail->number,
		.time_ns = detail->time_ns,
		.thread = detail->thread,
		.stack = detail->stack,
		.selected = detail->selected,
		.inherited = detail->inherited,
	};
}

// A table of blocks that is put into order. It gives them region by region (blocks.h): so regions
// are sorted, and then what is in each, which is far less than to move all blocks about.
struct sorting {
	struct present_block *blocks; // as they come
	uint64_t *regions;            // number of each region, and where it begins in `blocks`
	size_t regions_count, regions_capacity;
	uint64_t *keys, *scratch; // of one region: place in it, and position
	size_t keys_capacity, scratch_capacity;
};

enum { REGION_SHIFT = 16, REGION_WORDS = 2 };

static void gather(const struct present *present, const struct blocks *blocks,
		   struct sorting *sorting)
{
	struct blocks_cursor cursor = { 0 };
	const struct block *block;
	size_t count = 0;

	sorting->blocks = mem_alloc(blocks->count + 1, sizeof *sorting->blocks);
	while ((block = blocks_next(blocks, &cursor))) {
		uint64_t region = cursor.address >> REGION_SHIFT;
		size_t regions = sorting->regions_count;

		if (regions == 0 || sorting->regions[REGION_WORDS * (regions - 1)] != region) {
			sorting->regions = mem_grow(sorting->regions, &sorting->regions_capacity,
						    regions + 1, REGION_WORDS * sizeof(uint64_t));
			sorting->regions[REGION_WORDS * regions] = region;
			sorting->regions[REGION_WORDS * regions + 1] = count;
			sorting->regions_count++;
		}
		sorting->blocks[count++] = describe(present, blocks, block, cursor.address);
	}
}

static int by_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return x[0] < y[0] ? -1 : x[0] > y[0];
}

// Write what begins at `first` and is in one region to `out`. Returns how many those are.
static size_t put_region(struct sorting *sorting, size_t first, size_t end,
			 struct present_block *out)
{
	const struct present_block *blocks = sorting->blocks;
	uint64_t region = blocks[first].address >> REGION_SHIFT;
	size_t count = 0;

	for (size_t i = first; i < end && blocks[i].address >> REGION_SHIFT == region; i++) {
		sorting->keys = mem_grow(sorting->keys, &sorting->keys_capacity, count + 1,
					 sizeof *sorting->keys);
		sorting->keys[count++] = (blocks[i].address & ((1 << REGION_SHIFT) - 1)) << 32 |
					 (i - first);
	}
	sorting->scratch = mem_grow(sorting->scratch, &sorting->scratch_capacity, count,
				    sizeof *sorting->scratch);
	radix_sort(sorting->keys, sorting->scratch, count, 32);
	for (size_t i = 0; i < count; i++)
		out[i] = blocks[first + (uint32_t)sorting->keys[i]];
	return count;
}

// Append the blocks of a heap, by address.
static void collect(const struct present *present, const struct blocks *blocks, process_id process,
		    heap_id heap, struct present_block **list, size_t *count)
{
	struct sorting sorting = { 0 };
	size_t total = blocks->count;

	if (total == 0)
		return;
	gather(present, blocks, &sorting);
	qsort(sorting.regions, sorting.regions_count, REGION_WORDS * sizeof(uint64_t), by_first);
	*list = mem_resize(*list, *count + total, sizeof **list);
	for (size_t i = 0; i < sorting.regions_count; i++)
		*count += put_region(&sorting, (size_t)sorting.regions[REGION_WORDS * i + 1], total,
				     *list + *count);
	for (size_t i = *count - total; i < *count; i++) {
		(*list)[i].process = process;
		(*list)[i].heap = heap;
	}
	mem_free(sorting.blocks);
	mem_free(sorting.regions);
	mem_free(sorting.keys);
	mem_free(sorting.scratch);
}

static int by_address(const void *a, const void *b)
{
	const struct present_block *x = a;
	const struct present_block *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->heap < y->heap ? -1 : x->heap > y->heap;
}

struct present_block *present_blocks(const struct present *present, process_id process,
				     enum present_heaps heaps, size_t *count)
{
	struct present_block *list = NULL;
	size_t first;

	*count = 0;
	if (process >= present->processes_count)
		return NULL;
	collect(present, &present->processes[process].blocks, process, 0, &list, count);
	first = *count;
	for (heap_id heap = 1; heap < present->heaps_count; heap++) {
		const struct trace_heap *found = reader_heap(present->reader, heap);

		if (found && found->process == process &&
		    (heaps == PRESENT_ALL || reader_heap_is_language(found)))
			collect(present, &present->heaps[heap], process, heap, &list, count);
	}
	if (*count > first)
		qsort(list, *count, sizeof *list, by_address);
	return list;
}

void present_claim(struct present *present, process_id process, uint64_t address)
{
	space_claim(present->space, process, address);
}

const struct space *present_space(const struct present *present)
{
	return present->space;
}

uint64_t present_time(const struct present *present, process_id process)
{
	if (!present->options.at_exit)
		return present->options.edge.time_ns;
	if (process < present->processes_count &&
	    present->processes[process].ended_ns != UINT64_MAX)
		return present->processes[process].ended_ns;
	return moment_duration(present->reader);
}

uint64_t present_events(const struct present *present)
{
	return present->events;
}
