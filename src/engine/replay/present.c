// Events go to two machines: calls on virtual memory to `space`, all others to `lives`. Where the
// moment is depends on how it was given. A time is the end of its tick: all events of that time
// are before it. An exact edge is before the event of its number, and of what has no number only a
// process's end is kept out. For example with an edge at event 5 and, after event 4, the notes
// "mark step" and "end p": the mark is before the moment, the end is not, so that p's blocks are
// still there to be seen.
//
// What malloc has mapped is known only by its blocks: present_settle has each live one claim the
// mapping around it, and then owners are final.
#include "engine/replay/present.h"

#include "base/mem.h"
#include "base/radix.h"
#include "base/sort.h"
#include "engine/replay/lives.h"
#include "engine/space/space_listed.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <stdlib.h>
#include <string.h>

struct present {
	struct reader *reader;
	struct present_options options;
	struct space *space;
	struct space_listed *listed; // until it is settled
	struct lives *lives;
	struct present_block *sure; // that live beside those; see present_put_all
	size_t sure_count;
	uint64_t events;
};

void present_free(struct present *present)
{
	if (!present)
		return;
	space_listed_finish(present->listed);
	space_free(present->space);
	lives_free(present->lives);
	MEM_FREE(present->sure, present);
}

void present_add_event(struct present *present, const struct trace_event *event)
{
	const struct present_options *options = &present->options;
	bool vm = trace_kind_is_vm(event->kind);
	bool shown = vm || effect_of(event->kind) & EFFECT_FAILS;

	if (!reader_thread(present->reader, event->thread))
		return;
	present->events = event->number + 1;
	if (shown)
		space_learn(present->space, present->reader);
	if (vm)
		space_listed_pass(present->listed, event->number);
	if (options->before && shown)
		options->before(options->context, present->space, event);
	if (vm)
		space_add_event(present->space, event);
	else
		lives_add_event(present->lives, event);
	if (options->after && shown)
		options->after(options->context, present->space, event);
}

// A process and all that descends to the one whose inheritance is wanted.
static bool inherits(const struct present *present, process_id id)
{
	process_id at = present->options.inherits;
	const struct trace_process *process;

	for (size_t hops = 0; hops < reader_processes_count(present->reader); hops++) {
		if (at == id)
			return true;
		process = reader_process(present->reader, at);
		if (!process || process->start != TRACE_START_FORK)
			return false;
		at = process->parent;
	}
	return false;
}

void present_add_note(struct present *present, const struct trace_note *note)
{
	const struct trace_process *process = reader_process(present->reader, note->process);
	bool ends = note->kind == TRACE_NOTE_PROCESS_END;

	if (!process || (ends && present->options.at_exit))
		return;
	if (note->kind == TRACE_NOTE_PROCESS_START && process->start == TRACE_START_FORK &&
	    process->parent != process->id && inherits(present, process->id))
		lives_inherit(present->lives, process->parent, process->id);
	space_learn(present->space, present->reader);
	if (ends)
		space_listed_end(present->listed, note->process);
	space_add_note(present->space, note);
	lives_add_note(present->lives, note);
	if (present->options.noted && (ends || note->kind == TRACE_NOTE_PROCESS_START))
		present->options.noted(present->options.context, present->space, note);
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

// Apply what is before the moment. False: that was the last of it.
static bool apply_events(struct present *present, struct trace_event *events, uint32_t count)
{
	lives_expect(present->lives, events, count);
	for (uint32_t i = 0; i < count; i++) {
		if (!present->options.at_exit &&
		    moment_passed(&present->options.edge, events[i].number, events[i].time_ns))
			return false;
		if (events[i].stack >= reader_stacks_count(present->reader))
			events[i].stack = 0;
		present_add_event(present, &events[i]);
	}
	return true;
}

static void read_items(struct present *present)
{
	struct reader_runs runs = { .reader = present->reader,
				    .progress = present->options.progress };
	bool more = true;

	while (more) {
		enum reader_item item = reader_runs_next(&runs);

		if (item == READER_EVENT)
			more = apply_events(present, runs.events, runs.count);
		else if (item == READER_END ||
			 (!present->options.at_exit && passed_by(present, &runs.note)))
			more = false;
		else
			present_add_note(present, &runs.note);
	}
}

struct present *present_new(struct reader *reader, const struct present_options *options)
{
	struct present *present = mem_alloc(1, sizeof *present);

	ASSERT(reader);
	present->reader = reader;
	present->options = *options;
	present->options.before = present->options.after = NULL;
	present->options.noted = NULL;
	present->space = space_new(NULL);
	present->lives = lives_new(reader, NULL, NULL);
	space_learn(present->space, reader);
	present->listed = space_listed_new(present->space, reader, options->query,
					   options->at_exit ? NULL : &options->edge);
	return present;
}

void present_listen(struct present *present, const struct present_options *options)
{
	present->options.before = options->before;
	present->options.after = options->after;
	present->options.noted = options->noted;
}

// A block as lives.h has it.
static struct lives_block life_of(const struct present_block *block)
{
	return (struct lives_block){
		.address = block->address,
		.size = block->size,
		.number = block->number,
		.time_ns = block->time_ns,
		.process = block->process,
		.thread = block->thread,
		.stack = block->stack,
		.heap = block->heap,
	};
}

void present_put(struct present *present, const struct present_block *block)
{
	const struct lives_block begun = life_of(block);

	if (reader_process(present->reader, block->process))
		lives_put(present->lives, block->process, &begun);
}

void present_put_all(struct present *present, struct present_block *blocks, size_t count)
{
	ASSERT(!present->sure);
	present->sure = blocks;
	present->sure_count = count;
}

// Of a process.
static const struct present_block *sure_of(const struct present *present, process_id process,
					   size_t *count)
{
	size_t low = 0, high = present->sure_count, first;

	ASSERT(present->sure_count == 0 || present->sure);
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (present->sure[middle].process < process)
			low = middle + 1;
		else
			high = middle;
	}
	first = low;
	high = present->sure_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (present->sure[middle].process <= process)
			low = middle + 1;
		else
			high = middle;
	}
	*count = low - first;
	return present->sure + first;
}

struct claiming {
	struct space *space;
	process_id process;
	bool whole;
};

static void claim(void *context, uint64_t address)
{
	const struct claiming *claiming = context;

	if (claiming->whole)
		space_claim_whole(claiming->space, claiming->process, address);
	else
		space_claim(claiming->space, claiming->process, address);
}

static void claim_all(struct present *present, bool whole)
{
	for (process_id id = 0; id < reader_processes_count(present->reader); id++) {
		struct claiming claiming = { present->space, id, whole };
		size_t count;
		const struct present_block *sure = sure_of(present, id, &count);

		lives_each_address(present->lives, id, claim, &claiming);
		for (size_t i = 0; i < count; i++)
			if (sure[i].heap == 0)
				claim(&claiming, sure[i].address);
	}
}

void present_settle(struct present *present, uint64_t events)
{
	ASSERT(present->listed);
	present->events = events;
	space_learn(present->space, present->reader);
	space_listed_finish(present->listed);
	present->listed = NULL;
	// Whole mappings first: they say which of the large ones are another malloc's, and only
	// then is what is left given to blocks.
	claim_all(present, true);
	claim_all(present, false);
}

struct present *present_read(struct reader *reader, const struct present_options *options)
{
	struct present *present = present_new(reader, options);

	present_listen(present, options);
	read_items(present);
	present_settle(present, present->events);
	return present;
}

static bool is_wanted(const struct present *present, enum present_heaps heaps, heap_id heap)
{
	const struct trace_heap *known;

	if (!heap || heaps == PRESENT_ALL)
		return true;
	known = reader_heap(present->reader, heap);
	return known->handle || reader_heap_is_language(known);
}

static struct present_block block_of(const struct present *present, process_id process,
				     const struct lives_block *life)
{
	const struct query *query = present->options.query;

	return (struct present_block){
		.address = life->address,
		.size = life->size,
		.number = life->number,
		.time_ns = life->time_ns,
		.process = process,
		.thread = life->thread,
		.stack = life->stack,
		.heap = life->heap,
		.selected = !query || lives_selects(query, life),
		.inherited = life->origin == LIVES_COPY,
	};
}

SORT_ORDER(by_address, struct present_block, SORT_RISES(address), SORT_RISES(heap))

// Blocks of `lives` that are listed, or told one by one.
struct listing {
	const struct present *present;
	process_id process;
	enum present_heaps heaps;
	struct present_block *list; // NULL: `each` is told
	size_t count;
	void (*each)(void *context, const struct present_block *block);
	void *context;
};

static bool listing_wants(void *context, heap_id heap)
{
	const struct listing *listing = context;

	return is_wanted(listing->present, listing->heaps, heap);
}

static void add_life(void *context, const struct lives_block *life)
{
	struct listing *listing = context;
	const struct present_block block = block_of(listing->present, listing->process, life);

	if (listing->list)
		listing->list[listing->count++] = block;
	else
		listing->each(listing->context, &block);
}

// The blocks of `lives`, by address.
static struct present_block *list_lives(const struct present *present, process_id process,
					enum present_heaps heaps, size_t *count)
{
	struct listing listing = { .present = present, .process = process, .heaps = heaps };
	size_t among = lives_each_of(present->lives, process, listing_wants, NULL, &listing, count);

	if (*count == 0)
		return NULL;
	listing.list = mem_alloc_table(*count, sizeof *listing.list);
	lives_each_of(present->lives, process, listing_wants, add_life, &listing, NULL);
	ASSERT(listing.count == *count);
	if (among > 1)
		qsort(listing.list, *count, sizeof *listing.list, by_address);
	return listing.list;
}

static bool selects(const struct query *query, const struct present_block *block)
{
	const struct lives_block life = life_of(block);

	return lives_selects(query, &life);
}

// What of two lists is wanted, put together at the end of the first, which has room for both.
static size_t merge_back(const struct present *present, enum present_heaps heaps,
			 struct present_block *sure, size_t sure_count,
			 const struct present_block *lives, size_t lives_count)
{
	const struct query *query = present->options.query;
	bool narrows = query && query_narrows(query);
	size_t end = sure_count + lives_count, at = end;

	while (sure_count > 0) {
		struct present_block *block = &sure[sure_count - 1];

		if (lives_count > 0 && by_address(&lives[lives_count - 1], block) > 0) {
			sure[--at] = lives[--lives_count];
			continue;
		}
		sure_count--;
		if (!is_wanted(present, heaps, block->heap))
			continue;
		block->selected = !narrows || selects(query, block);
		sure[--at] = *block;
	}
	while (lives_count > 0)
		sure[--at] = lives[--lives_count];
	ASSERT(at <= end);
	if (at > 0)
		memmove(sure, sure + at, (end - at) * sizeof *sure);
	return end - at;
}

struct present_block *present_blocks(const struct present *present, process_id process,
				     enum present_heaps heaps, size_t *count)
{
	size_t lives_count, sure_count;
	struct present_block *lives = list_lives(present, process, heaps, &lives_count), *list;
	const struct present_block *sure = sure_of(present, process, &sure_count);

	*count = lives_count;
	if (sure_count == 0)
		return lives;
	list = mem_alloc_table(sure_count + lives_count, sizeof *list);
	memcpy(list, sure, sure_count * sizeof *list);
	*count = merge_back(present, heaps, list, sure_count, lives, lives_count);
	mem_free(lives);
	return list;
}

void present_forget_blocks(struct present *present)
{
	lives_free(present->lives);
	mem_free(present->sure);
	present->lives = NULL;
	present->sure = NULL;
	present->sure_count = 0;
}

struct present_block *present_take_blocks(struct present *present, process_id process,
					  enum present_heaps heaps, size_t *count)
{
	size_t lives_count, sure_count;
	struct present_block *lives, *list;

	sure_of(present, process, &sure_count);
	if (sure_count == 0 || sure_count < present->sure_count)
		return present_blocks(present, process, heaps, count);
	lives = list_lives(present, process, heaps, &lives_count);
	ASSERT(sure_count == present->sure_count);
	list = mem_resize(present->sure, sure_count + lives_count, sizeof *list);
	present->sure = NULL;
	present->sure_count = 0;
	*count = merge_back(present, heaps, list, sure_count, lives, lives_count);
	mem_free(lives);
	return list;
}

void present_each_block(const struct present *present, process_id process, enum present_heaps heaps,
			void (*each)(void *context, const struct present_block *block),
			void *context)
{
	struct listing listing = { .present = present,
				   .process = process,
				   .heaps = heaps,
				   .each = each,
				   .context = context };
	struct present_block *list;
	size_t count;

	ASSERT(each && present->sure_count == 0);
	if (lives_each_of(present->lives, process, listing_wants, NULL, &listing, NULL) <= 1) {
		lives_each_of(present->lives, process, listing_wants, add_life, &listing, NULL);
		return;
	}
	list = list_lives(present, process, heaps, &count);
	for (size_t i = 0; i < count; i++)
		each(context, &list[i]);
	mem_free(list);
}

size_t present_count(const struct present *present, process_id process, enum present_heaps heaps)
{
	struct listing listing = { .present = present, .heaps = heaps };
	size_t count, sure_count;
	const struct present_block *sure = sure_of(present, process, &sure_count);

	lives_each_of(present->lives, process, listing_wants, NULL, &listing, &count);
	for (size_t i = 0; i < sure_count; i++)
		count += is_wanted(present, heaps, sure[i].heap);
	return count;
}

void present_claim_whole(struct present *present, process_id process, uint64_t address)
{
	space_claim_whole(present->space, process, address);
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
	const struct trace_process *of = reader_process(present->reader, process);

	if (!present->options.at_exit)
		return present->options.edge.time_ns;
	return of && of->ended_ns != UINT64_MAX ? of->ended_ns : moment_duration(present->reader);
}

uint64_t present_events(const struct present *present)
{
	return present->events;
}
