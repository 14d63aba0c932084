// Reading a trace from end to end, for what it adds up to.
//
// Counting is a matter of waiting for memory: a block is somewhere in tables of a gigabyte, unless
// it is near (blocks_keep_near), its site somewhere in another. So up to 64 events are taken at
// once, as runs of one thread, and what they will touch is fetched in three rounds, each of which
// needs what the round before has fetched:
//
//     expect_ways     the directory's entry of the block's region, if the block is not near; the
//                     number of the stack's site
//     expect_blocks   the block's slot in the region's table
//     expect_sites    the site's figures
//
// then they are counted. With few sites (up to 2,048: 256 KiB) these are in a cache anyway, and the
// first and third round are left out.
#include "engine/replay/heap_own.h"

enum {
	EXPECT_EVENTS = 64,       // read ahead of the counting, see blocks_expect
	SITES_MANY = 1 << 11,     // more than the nearest cache has room for
	NEAR_PEAK = 16,           // the level, by a part of so many
	PROGRESS_EVERY = 1 << 11, // batches between two looks at the progress bar
};

void heap_learn(struct heap *heap, const struct reader *reader)
{
	while (heap->processes_count < reader_processes_count(reader)) {
		process_id id = (process_id)heap->processes_count;

		heap_add_process(heap, trace_start_inherits(reader_process(reader, id)->start));
	}
	while (heap->threads_count < reader_threads_count(reader)) {
		thread_id id = (thread_id)heap->threads_count;

		heap_add_thread(heap, reader_thread(reader, id)->process);
	}
}

// Events of one thread, which will be counted soon: what that takes is fetched from memory before.
struct run {
	const struct trace_event *events;
	uint32_t count;
	const struct blocks *blocks; // of malloc's heap; NULL: it is not asked
	struct blocks_hint *hints;   // of each
	uint8_t *far;                // those whose blocks are not near, by their number in the run
	uint32_t far_count;
};

// Only calls on malloc's own heap are asked for; for all others `blocks` stays NULL, and they are
// counted without.
static struct run run_of(const struct heap *heap, const struct trace_event *events, uint32_t count,
			 struct blocks_hint *hints, uint8_t *far)
{
	struct run run = { .events = events, .count = count, .hints = hints, .far = far };
	process_id process;

	if (events->thread >= heap->threads_count || events->kind > TRACE_FAILED || events->heap)
		return run;
	process = heap->threads[events->thread].process;
	if (process < heap->processes_count)
		run.blocks = &heap->processes[process].blocks;
	return run;
}

static bool begins(const struct trace_event *event)
{
	return event->kind <= TRACE_REALLOC && event->kind != TRACE_FREE;
}

static void expect_site(const struct heap *heap, uint32_t site)
{
	if (site >= heap->sites_count)
		return;
	mem_expect(&heap->sites[site]);
	// While the level is near its peak, so does what lived at the peak change.
	if (heap->level.bytes >= heap->totals.counts.peak.bytes / NEAR_PEAK * (NEAR_PEAK - 1))
		mem_expect(&heap->sites[site].at_peak);
}

// Which blocks are not near. Of a realloc the old one is seldom so.
static void find_far(struct run *run)
{
	for (uint32_t i = 0; i < run->count; i++) {
		const struct trace_event *event = &run->events[i];

		run->far[run->far_count] = (uint8_t)i;
		run->far_count += !blocks_near(run->blocks, event->address) ||
				  event->kind == TRACE_REALLOC;
	}
}

// Where the next step has to look: the regions of the blocks, and the sites of stacks.
static void expect_ways(const struct heap *heap, const struct run *run)
{
	for (uint32_t i = 0; i < run->far_count; i++)
		blocks_expect_region(run->blocks, run->events[run->far[i]].address);
	for (uint32_t i = 0; i < run->count; i++) {
		const struct trace_event *event = &run->events[i];

		if (begins(event) && event->stack < heap->stack_site_capacity)
			mem_expect(&heap->stack_site[event->stack]);
	}
}

static void expect_blocks(const struct run *run)
{
	for (uint32_t i = 0; i < run->far_count; i++) {
		uint32_t far = run->far[i];

		run->hints[far] = blocks_expect(run->blocks, run->events[far].address);
		if (run->events[far].kind == TRACE_REALLOC)
			blocks_expect(run->blocks, run->events[far].old_address);
	}
}

// The sites of blocks that will be freed are those of what lives there now, mostly. What is near
// may be of a block that ended: its site is as good a guess as any.
static void expect_sites(const struct heap *heap, const struct run *run)
{
	for (uint32_t i = 0; i < run->count; i++) {
		const struct trace_event *event = &run->events[i];
		const struct block *block;

		if (begins(event)) {
			if (event->stack < heap->stack_site_capacity)
				expect_site(heap, heap->stack_site[event->stack]);
			continue;
		}
		block = blocks_near(run->blocks, event->address);
		if (!block)
			block = blocks_meet(run->blocks, event->address, &run->hints[i]);
		if (block)
			expect_site(heap, block->site);
	}
}

static void expect(const struct heap *heap, struct run *runs, uint32_t count)
{
	bool many = heap->sites_count > SITES_MANY;

	for (uint32_t i = 0; i < count; i++)
		if (runs[i].blocks)
			find_far(&runs[i]);
	for (uint32_t i = 0; i < count && many; i++)
		if (runs[i].blocks)
			expect_ways(heap, &runs[i]);
	for (uint32_t i = 0; i < count; i++)
		if (runs[i].blocks)
			expect_blocks(&runs[i]);
	for (uint32_t i = 0; i < count && many; i++)
		if (runs[i].blocks)
			expect_sites(heap, &runs[i]);
}

void heap_on_vm(struct heap *heap, void (*on_vm)(void *context, const struct trace_event *event),
		void *context)
{
	heap->on_vm = on_vm;
	heap->on_vm_context = context;
}

// Take and count what comes up to the next note, or the end; which of them it was is returned.
static enum reader_item read_events(struct heap *heap, struct reader *reader,
				    struct progress *progress, struct trace_note *note)
{
	struct trace_event events[EXPECT_EVENTS];
	struct blocks_hint hints[EXPECT_EVENTS] = { 0 };
	uint8_t far[EXPECT_EVENTS];
	enum reader_item item = READER_EVENT;
	uint32_t batches = 0;

	while (item == READER_EVENT) {
		struct run runs[EXPECT_EVENTS];
		uint32_t runs_count = 0, count = 0;

		while (count < EXPECT_EVENTS) {
			struct trace_event *event = &events[count];
			uint32_t run = reader_run(reader, event, EXPECT_EVENTS - count);

			if (run == 0) {
				item = reader_next(reader, event, note);
				if (item != READER_EVENT)
					break;
				run = 1;
			}
			if (event->thread >= heap->threads_count)
				heap_learn(heap, reader);
			if ((event->vm || trace_kind_is_pool(event->kind)) && heap->on_vm)
				heap->on_vm(heap->on_vm_context, event);
			runs[runs_count++] = run_of(heap, event, run, &hints[count], &far[count]);
			count += run;
		}
		expect(heap, runs, runs_count);
		for (uint32_t i = 0; i < runs_count; i++) {
			if (runs[i].count > 1)
				heap_add_run(heap, runs[i].events, runs[i].count, runs[i].hints);
			else
				heap_add_event(heap, runs[i].events);
		}
		if (++batches % PROGRESS_EVERY == 0)
			progress_update(progress, reader_position(reader));
	}
	return item;
}

void heap_read(struct heap *heap, struct reader *reader, struct progress *progress,
	       void (*on_note)(void *context, const struct trace_note *note), void *context)
{
	struct trace_note note;

	heap_sampled(heap, reader_info(reader)->sample_bytes,
		     reader_is_estimated(reader) ? reader : NULL);
	heap_trimmed(heap, reader_info(reader)->trimmed);
	heap_learn(heap, reader);
	while (read_events(heap, reader, progress, &note) == READER_NOTE) {
		heap_learn(heap, reader);
		heap_add_note(heap, &note);
		if (on_note)
			on_note(context, &note);
	}
	heap_learn(heap, reader);
	if (reader_end(reader) && reader_end(reader)->duration_ns > heap->totals.duration_ns)
		heap->totals.duration_ns = reader_end(reader)->duration_ns;
	if (reader_end(reader) && reader_end(reader)->events_lost > heap->totals.events_lost)
		heap->totals.events_lost = reader_end(reader)->events_lost;
	heap_finish(heap);
}
