// Reading a trace from end to end, for what it adds up to.
//
// Counting is a matter of waiting for memory: a block is somewhere in tables of a gigabyte, its
// site somewhere in another. So an address is looked for once in a block of events, and is near
// from then on, in a list by the spots that the thread that decodes has given (reader_calls). Up to
// 64 calls are taken at once, as runs of one thread, and what they will touch is fetched in rounds,
// each of which needs what the round before has fetched:
//
//     the directory's entries of the regions of blocks that are not near, and the numbers of the
//     stacks' sites
//     these blocks' slots in their regions' tables; then they come near
//     the figures of all sites
//
// then they are counted. With few sites (up to 2,048: 256 KiB) these are in a cache anyway, and are
// not fetched.
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

// What will be counted soon: calls where the reader has them, with spots, or one event. What that
// takes is fetched from memory before.
struct run {
	struct reader_calls calls;       // count 0: it is `event`
	const struct trace_event *event; // ours
	struct reader_spots spots;
};

// The process of calls that are asked for: NO_PROCESS for all others, which are counted without.
#define NO_PROCESS ((process_id)-1)

static process_id process_of(const struct heap *heap, const struct run *run)
{
	process_id process;

	if (run->calls.count == 0 || run->calls.block != heap->near_block || heap->held_count > 0 ||
	    run->calls.thread >= heap->threads_count)
		return NO_PROCESS;
	process = heap->threads[run->calls.thread].process;
	return process < heap->processes_count ? process : NO_PROCESS;
}

// Calls that begin a block and those that end one come in no order, so the loops below take no
// branches on it: what is fetched is chosen.
static inline bool begins(const struct reader_call *call)
{
	return (call->kind <= TRACE_REALLOC) & (call->kind != TRACE_FREE);
}

// A call whose block is not near.
struct far {
	const struct reader_call *call;
	process_id process;
	struct blocks_hint hint;
};

// Where the next step has to look: blocks that are not near, and the sites of stacks.
static uint32_t find_far(const struct heap *heap, process_id process,
			 const struct reader_calls *calls, bool many, struct far *far)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < calls->count; i++) {
		far[count].call = &calls->calls[i];
		far[count].process = process;
		count += !heap_is_near(heap, calls->calls[i].spot);
	}
	for (uint32_t i = 0; i < calls->count && many; i++) {
		stack_id stack = calls->calls[i].stack;

		mem_expect(&heap->stack_site[stack < heap->stack_site_capacity ? stack : 0]);
	}
	return count;
}

static void expect_site(const struct heap *heap, uint32_t site, bool peaks)
{
	site = site < heap->sites_count ? site : 0;
	mem_expect(&heap->sites[site]);
	if (peaks)
		mem_expect(&heap->sites[site].at_peak);
}

// The sites of blocks that will be freed are those of what lives there now, mostly, or ended last:
// that is as good a guess as any. While the level is near its peak, what lived at the peak changes,
// too.
static void expect_sites(const struct heap *heap, const struct reader_calls *calls)
{
	bool peaks = heap->level.bytes >=
		     heap->totals.counts.peak.bytes / NEAR_PEAK * (NEAR_PEAK - 1);

	for (uint32_t i = 0; i < calls->count; i++) {
		const struct reader_call *call = &calls->calls[i];
		uint32_t begun =
			heap->stack_site[call->stack < heap->stack_site_capacity ? call->stack : 0];
		uint32_t ended = heap->near[call->spot].block.site;

		expect_site(heap, begins(call) ? begun : ended, peaks);
	}
}

// What was fetched comes near, so that it is known whose site is needed. A second call of the same
// address finds it there.
static void bring_near(struct heap *heap, const struct far *far, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (far[i].call->spot < READER_SPOTS && !heap_is_near(heap, far[i].call->spot))
			heap_bring_near(heap, far[i].process, far[i].call->spot,
					far[i].call->address, far[i].hint);
}

static void expect(struct heap *heap, const struct run *runs, uint32_t count)
{
	process_id process[EXPECT_EVENTS];
	struct far far[EXPECT_EVENTS];
	bool many = heap->sites_count > SITES_MANY;
	uint32_t far_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		process[i] = process_of(heap, &runs[i]);
		if (process[i] != NO_PROCESS)
			far_count +=
				find_far(heap, process[i], &runs[i].calls, many, &far[far_count]);
	}
	for (uint32_t i = 0; i < far_count; i++)
		blocks_expect_region(&heap->processes[far[i].process].blocks, far[i].call->address);
	for (uint32_t i = 0; i < far_count; i++)
		far[i].hint = blocks_expect(&heap->processes[far[i].process].blocks,
					    far[i].call->address);
	if (!heap->estimated)
		bring_near(heap, far, far_count);
	for (uint32_t i = 0; i < count && many; i++)
		if (process[i] != NO_PROCESS)
			expect_sites(heap, &runs[i].calls);
}

void heap_on_vm(struct heap *heap, void (*on_vm)(void *context, const struct trace_event *event),
		void *context)
{
	heap->on_vm = on_vm;
	heap->on_vm_context = context;
}

// What comes next: calls, or else one event into *event, or another item.
static enum reader_item next_run(struct reader *reader, uint32_t max, struct run *run,
				 struct trace_event *event, struct trace_note *note)
{
	enum reader_item item;

	*run = (struct run){ .event = event };
	if (reader_calls(reader, &run->calls, max))
		return READER_EVENT;
	run->calls.count = 0;
	item = reader_next(reader, event, note);
	if (item == READER_EVENT)
		run->spots = reader_spots(reader);
	return item;
}

static void count_run(struct heap *heap, const struct run *run)
{
	uint64_t block = run->calls.count > 0 ? run->calls.block : run->spots.block;

	if (block == 0) {
		heap_add_event(heap, run->event);
		return;
	}
	heap_near_of(heap, block);
	if (run->calls.count > 0)
		heap_add_calls(heap, &run->calls);
	else
		heap_add_at(heap, run->event, &run->spots);
}

// Take and count what comes up to the next note, or the end; which of them it was is returned.
static enum reader_item read_events(struct heap *heap, struct reader *reader,
				    struct progress *progress, struct trace_note *note)
{
	struct trace_event events[EXPECT_EVENTS];
	enum reader_item item = READER_EVENT;
	uint32_t batches = 0;

	while (item == READER_EVENT) {
		struct run runs[EXPECT_EVENTS];
		uint32_t runs_count = 0, count = 0;

		while (count < EXPECT_EVENTS && (count == 0 || reader_keeps(reader))) {
			struct run *run = &runs[runs_count];
			struct trace_event *event = &events[runs_count];

			item = next_run(reader, EXPECT_EVENTS - count, run, event, note);
			if (item != READER_EVENT)
				break;
			runs_count++;
			count += run->calls.count > 0 ? run->calls.count : 1;
			if (run->calls.count == 0 && event->thread >= heap->threads_count)
				heap_learn(heap, reader);
			else if (run->calls.count > 0 && run->calls.thread >= heap->threads_count)
				heap_learn(heap, reader);
			if (run->calls.count == 0 && heap->on_vm &&
			    (event->vm || trace_kind_is_pool(event->kind)))
				heap->on_vm(heap->on_vm_context, event);
		}
		if (runs_count > 0 && runs[0].calls.count > 0)
			heap_near_of(heap, runs[0].calls.block);
		expect(heap, runs, runs_count);
		for (uint32_t i = 0; i < runs_count; i++)
			count_run(heap, &runs[i]);
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
	reader_give_spots(reader, true);
	while (read_events(heap, reader, progress, &note) == READER_NOTE) {
		heap_learn(heap, reader);
		heap_add_note(heap, &note);
		if (on_note)
			on_note(context, &note);
	}
	reader_give_spots(reader, false);
	heap_learn(heap, reader);
	if (reader_end(reader) && reader_end(reader)->duration_ns > heap->totals.duration_ns)
		heap->totals.duration_ns = reader_end(reader)->duration_ns;
	if (reader_end(reader) && reader_end(reader)->events_lost > heap->totals.events_lost)
		heap->totals.events_lost = reader_end(reader)->events_lost;
	heap_finish(heap);
}
