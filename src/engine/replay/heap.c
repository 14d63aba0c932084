// What each event does to the counts.
//
// A block is counted by a site, or by none: block->site is SITE_NONE where the query leaves its
// stack, size or process out. It is put into the table all the same, since its free would else be
// that of an unknown block.
//
// What a site held at the peak is found without a second pass. A number, the epoch, rises with each
// new peak of the level; a site that is about to change compares its own with it, and saves what it
// holds where they differ (site_settle). For example, with one site A that has a block of 100 bytes
// and one B that gets one of 50:
//
//     event       level   epoch   A (live, saved)    B (live, saved)
//     A + 100       100   0 > 1   100, -             0, -
//     B + 50        150   1 > 2   100, -             50, 0 (saved at epoch 1)
//     A - 100        50   2       0, 100 (at 2)      50, 0
//     the end        50   2       0, 100             50, 50 (saved by heap_finish)
//
// 100 and 50 are the 150 of the peak. A site that did not change after the peak costs nothing until
// the end.
//
// Runs of calls of one thread are the common case, and most recordings are neither sampled nor
// filtered by event: these are counted in heap_calls.c, with the sums of a run at hand. All others,
// and what is rare in a run, go the long way, event by event.
#include "engine/replay/heap_own.h"

#include "base/mem.h"
#include "engine/replay/weight.h"
#include "trace/effect.h"

_Static_assert(sizeof(struct heap_site) == 128, "two lines of the cache");

// For one site more.
static void make_room(struct heap *heap)
{
	mem_area_grow(&heap->table, (heap->sites_count + 1) * sizeof *heap->sites);
	heap->sites = heap->table.at;
	heap->sites_capacity = heap->table.size / sizeof *heap->sites;
}

struct heap *heap_new(const struct query *query)
{
	struct heap *heap = mem_alloc(1, sizeof *heap);

	heap->query = query;
	heap->near_turn = 1;
	make_room(heap);
	heap->sites_count = 1;
	return heap;
}

// Blocks that are still in the tables go with them.
void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	for (size_t i = 0; i < heap->processes_count; i++) {
		blocks_fini(&heap->processes[i].blocks);
		for (size_t j = 0; j < heap->processes[i].heaps_count; j++)
			blocks_fini(&heap->processes[i].heaps[j]);
		mem_free(heap->processes[i].heaps);
		map_fini(&heap->processes[i].inherited);
	}
	for (size_t i = 0; i < heap->threads_count; i++)
		mem_free(heap->threads[i].pending);
	MEM_FREE(heap->processes, heap->threads, heap->stack_site);
	mem_area_fini(&heap->table);
	map_fini(&heap->sites_else);
	MEM_FREE(heap->variances, heap->held, heap->near, heap->met, heap);
}

// The query is asked once here, not for each event.
void heap_add_process(struct heap *heap, bool forked)
{
	process_id id = (process_id)heap->processes_count;

	MEM_ROOM(heap->processes, heap->processes_capacity, id + (size_t)1);
	heap->processes[id] = (struct heap_process_state){
		.forked = forked,
		.selected = !heap->query || query_has_process(heap->query, id),
	};
	heap->processes_count++;
}

void heap_add_thread(struct heap *heap, process_id process)
{
	thread_id id = (thread_id)heap->threads_count;

	MEM_ROOM(heap->threads, heap->threads_capacity, id + (size_t)1);
	heap->threads[id] = (struct heap_thread_state){
		.process = process,
		.selected = !heap->query || query_has_thread(heap->query, id),
	};
	heap->threads_count++;
}

void heap_sampled(struct heap *heap, uint64_t mean_bytes, const struct reader *by_stack)
{
	heap->estimated = mean_bytes > 0 || by_stack;
	heap->mean_bytes = mean_bytes;
	heap->by_stack = by_stack;
}

void heap_trimmed(struct heap *heap, uint64_t number)
{
	heap->before_end = number;
}

// What a block of `size` stands for, at a site that is not SITE_NONE.
static inline struct weight weigh(const struct heap *heap, uint32_t site, uint64_t size)
{
	if (!heap->estimated)
		return (struct weight){ 1, size, 0, 0 };
	return weight_of(heap->variances[site].sample_bytes, size);
}

static inline void amount_add(struct heap_amount *amount, const struct weight *weight)
{
	amount->count += weight->count;
	amount->bytes += weight->bytes;
}

static inline void amount_take(struct heap_amount *amount, const struct weight *weight)
{
	amount->count -= weight->count;
	amount->bytes -= weight->bytes;
}

// The variances have the same numbers as the sites, and are there only for figures that are
// estimated. Of a recording with several means the stack says which it is.
static uint32_t new_site(struct heap *heap, process_id process, stack_id stack)
{
	uint32_t index = (uint32_t)heap->sites_count;

	ASSERT(heap->sites_count < SITE_NONE);
	if (heap->sites_count == heap->sites_capacity)
		make_room(heap);
	heap->sites[index] = (struct heap_site){ .process = process, .stack = stack };
	if (heap->estimated) {
		MEM_ROOM(heap->variances, heap->variances_capacity, heap->sites_count + 1);
		heap->variances[index] = (struct heap_variance){
			.sample_bytes = heap->mean_bytes
						? heap->mean_bytes
						: reader_sample_bytes(heap->by_stack, stack),
		};
	}
	heap->sites_count++;
	return index;
}

// One that is not the usual one of its stack, or not yet. A stack is mostly of one process:
// `stack_site` has its first site, and further ones are in a map. A stack that the query leaves out
// is asked about once.
static uint32_t find_other_site(struct heap *heap, process_id process, stack_id stack)
{
	uint32_t index;
	uint64_t *other;
	bool added;

	index = *MEM_REACH(heap->stack_site, heap->stack_site_capacity, stack);
	if (index == SITE_UNSELECTED)
		return SITE_NONE;
	if (index == SITE_UNSEEN) {
		if (!query_has_stack(heap->query, stack)) {
			heap->stack_site[stack] = SITE_UNSELECTED;
			return SITE_NONE;
		}
		index = new_site(heap, process, stack);
		heap->stack_site[stack] = index;
		return index;
	}
	other = map_put(&heap->sites_else, (uint64_t)process << 32 | stack, &added);
	if (added)
		*other = new_site(heap, process, stack);
	return (uint32_t)*other;
}

// The site of an allocation with `stack` in `process`, or SITE_NONE if the query leaves it out.
static inline uint32_t find_site(struct heap *heap, process_id process, stack_id stack)
{
	if (stack < heap->stack_site_capacity) {
		uint32_t index = heap->stack_site[stack];

		if (index != SITE_UNSEEN && index != SITE_UNSELECTED &&
		    heap->sites[index].process == process)
			return index;
	}
	return find_other_site(heap, process, stack);
}

// A counted block begins to live, or lives again.
static inline void live_add(struct heap *heap, struct heap_thread_state *thread,
			    struct heap_site *site, uint64_t size, const struct trace_event *event)
{
	struct heap_counts *process = &heap->processes[thread->process].counts;
	struct weight weight = weigh(heap, (uint32_t)(site - heap->sites), size);

	heap_settle_site(heap, site);
	amount_add(&site->live, &weight);
	amount_add(&process->live, &weight);
	amount_add(&heap->level, &weight);
	if (heap->variances)
		heap->variances[site - heap->sites].live += weight.bytes_variance;
	bound_change(&heap->bound, &thread->bound, event->time_ns, (int64_t)weight.bytes);
	if (process->live.bytes > process->peak.bytes)
		heap_raise_peak(process, &process->live, event);
	if (heap->level.bytes > heap->totals.counts.peak.bytes) {
		heap_raise_peak(&heap->totals.counts, &heap->level, event);
		heap->peak_epoch++;
	}
}

// A counted block of process `id` ceases to live.
static inline void live_take(struct heap *heap, process_id id, struct bound_thread *thread,
			     uint32_t index, uint64_t size, uint64_t time_ns)
{
	struct heap_site *site = &heap->sites[index];
	struct weight weight = weigh(heap, index, size);

	heap_settle_site(heap, site);
	amount_take(&site->live, &weight);
	amount_take(&heap->processes[id].counts.live, &weight);
	amount_take(&heap->level, &weight);
	if (heap->variances)
		heap->variances[index].live -= weight.bytes_variance;
	bound_change(&heap->bound, thread, time_ns, (int64_t)(0 - weight.bytes));
}

// The blocks of one heap of the process.
static struct blocks *blocks_of(struct heap_process_state *process, heap_id id)
{
	if (id == 0)
		return &process->blocks;
	if (id >= process->heaps_count) {
		(void)MEM_REACH(process->heaps, process->heaps_capacity, id);
		process->heaps_count = id + (size_t)1;
	}
	return &process->heaps[id];
}

// The block of an address that is near, alive or not; NULL: the table has it, if it is anywhere.
static inline struct block *near_block(struct heap *heap, process_id process,
				       const struct trace_event *event, uint64_t address,
				       uint32_t spot)
{
	struct heap_near *near;

	if (spot >= READER_SPOTS || event->heap != 0 || heap->estimated)
		return NULL;
	near = &heap->near[spot];
	if (near->turn != heap->near_turn)
		heap_bring_near(heap, process, spot, address, BLOCKS_NO_HINT);
	ASSERT(near->address == address);
	return near->process == process ? &near->block : NULL;
}

// Put a block of `size` where none should be; one that is there was freed without our seeing it.
// The size of the old block is looked up before the new one is written over it.
static inline struct block *place_block(struct heap *heap, struct heap_thread_state *thread,
					const struct trace_event *event, uint64_t size,
					uint32_t spot)
{
	struct heap_process_state *process = &heap->processes[thread->process];
	bool added;
	struct blocks *blocks = blocks_of(process, event->heap);
	struct block *block = near_block(heap, thread->process, event, event->address, spot);

	if (block)
		added = block->owner == 0;
	else
		block = blocks_put(blocks, event->address, &added);
	if (!added && block->site != SITE_NONE) {
		uint64_t lost = blocks_size(blocks, block);

		live_take(heap, thread->process, &thread->bound, block->site, lost, event->time_ns);
		process->counts.lost_frees += weigh(heap, block->site, lost).count;
	}
	blocks_set_size(blocks, block, size);
	return block;
}

// What was there before the trace or its window counts in levels and not as an allocation.
static inline void allocate(struct heap *heap, struct heap_thread_state *thread,
			    const struct trace_event *event, uint32_t spot)
{
	struct heap_counts *counts = &heap->processes[thread->process].counts;
	struct block *block = place_block(heap, thread, event, event->size, spot);
	struct weight weight;
	bool before = event->number < heap->before_end || event->kind == TRACE_BEFORE;
	struct heap_site *site;

	block->owner = event->thread + 1;
	block->site = SITE_NONE;
	if (thread->selected && query_has_event(heap->query, event))
		block->site = find_site(heap, thread->process, event->stack);
	if (!before) {
		thread->last_address = event->address;
		thread->allocated = true;
	}
	if (block->site == SITE_NONE)
		return;

	site = &heap->sites[block->site];
	weight = weigh(heap, block->site, event->size);
	if (before) {
		amount_add(&counts->before, &weight);
		live_add(heap, thread, site, event->size, event);
		return;
	}
	amount_add(&counts->allocated, &weight);
	if (site->allocated.count == 0)
		site->first_ns = event->time_ns;
	site->last_ns = event->time_ns;
	if (event->size > site->largest_bytes)
		site->largest_bytes = event->size;
	amount_add(&site->allocated, &weight);
	if (heap->variances) {
		heap->variances[block->site].allocated += weight.bytes_variance;
		heap->variances[block->site].allocated_count += weight.count_variance;
	}
	live_add(heap, thread, site, event->size, event);
}

bool heap_judges_frees(const struct heap *heap)
{
	return !heap->query || !(heap->query->stack || heap->query->event);
}

// Count a free of nothing known, or with -1 take it back. What chooses by stack or size says
// nothing of it.
static void count_unknown(struct heap *heap, struct heap_thread_state *thread, bool inherited,
			  int one)
{
	struct heap_counts *counts = &heap->processes[thread->process].counts;

	if (!thread->selected)
		return;
	if (!heap_judges_frees(heap))
		heap->unjudged_frees += (uint64_t)one;
	else if (inherited)
		counts->inherited_frees += (uint64_t)one;
	else
		counts->orphan_frees += (uint64_t)one;
}

// A free of an address where nothing is known to live. A forked process may free each address of
// its parent's once: a second free of it is an orphan.
static void release_unknown(struct heap *heap, struct heap_thread_state *thread, uint64_t address,
			    struct pending *pending)
{
	struct heap_process_state *process = &heap->processes[thread->process];

	pending->inherited = false;
	if (process->forked)
		map_put(&process->inherited, address, &pending->inherited);
	count_unknown(heap, thread, pending->inherited, 1);
}

// End the life of the block at `address`. What would be needed to take that back is left in
// `*pending`, which is filled in any case and not made active here: only a first half keeps it, and
// all others drop it. A block that its own thread frees before its next allocation is temporary; of
// samples that is not known, since allocations between may be missing.
static inline void release(struct heap *heap, struct heap_thread_state *thread,
			   const struct trace_event *event, uint64_t address,
			   struct pending *pending, uint32_t spot)
{
	struct heap_process_state *process = &heap->processes[thread->process];
	struct blocks *blocks = blocks_of(process, event->heap);
	struct block *near = near_block(heap, thread->process, event, address, spot);
	struct weight weight;

	pending->active = pending->temporary = pending->inherited = false;
	pending->address = address;
	if (near) {
		pending->block = *near;
		pending->known = near->owner != 0;
		near->owner = 0;
	} else {
		pending->known = blocks_take_at(blocks, address, BLOCKS_NO_HINT, &pending->block);
	}
	if (!pending->known) {
		release_unknown(heap, thread, address, pending);
		return;
	}
	pending->size = blocks_size(blocks, &pending->block);
	if (pending->block.site == SITE_NONE)
		return;

	weight = weigh(heap, pending->block.site, pending->size);
	process->counts.frees += weight.count;
	live_take(heap, thread->process, &thread->bound, pending->block.site, pending->size,
		  event->time_ns);
	if (pending->block.owner == event->thread + 1 && thread->allocated &&
	    thread->last_address == address && !heap->estimated) {
		pending->temporary = true;
		amount_add(&process->counts.temporary, &weight);
		amount_add(&heap->sites[pending->block.site].temporary, &weight);
	}
}

// The realloc failed: what its first half ended lives on, and was never freed.
static void undo(struct heap *heap, struct heap_thread_state *thread,
		 const struct trace_event *event, uint32_t spot)
{
	struct heap_process_state *process = &heap->processes[thread->process];
	struct pending *pending = thread->pending;
	struct weight weight;
	struct block *block;

	if (!pending || !pending->active || pending->address != event->address)
		return;
	if (!pending->known) {
		if (pending->inherited)
			map_remove(&process->inherited, event->address);
		count_unknown(heap, thread, pending->inherited, -1);
		return;
	}
	block = place_block(heap, thread, event, pending->size, spot);
	block->site = pending->block.site;
	block->owner = pending->block.owner;
	if (block->site == SITE_NONE)
		return;
	weight = weigh(heap, block->site, pending->size);
	process->counts.frees -= weight.count;
	if (pending->temporary) {
		amount_take(&process->counts.temporary, &weight);
		amount_take(&heap->sites[block->site].temporary, &weight);
	}
	live_add(heap, thread, &heap->sites[block->site], pending->size, event);
}

// A call that failed has no block and no site: so the query is asked about its stack here.
static void count_failed(struct heap *heap, struct heap_thread_state *thread,
			 const struct trace_event *event)
{
	struct heap_counts *counts = &heap->processes[thread->process].counts;

	if (thread->selected && query_has_stack(heap->query, event->stack) &&
	    query_has_event(heap->query, event))
		++*(effect_refuses(event) ? &counts->refused_frees : &counts->failed);
}

// A call that moved a block counts as a realloc wherever the new block counts.
static void reallocate(struct heap *heap, struct heap_thread_state *thread,
		       const struct trace_event *event, uint32_t spot)
{
	struct heap_counts *counts = &heap->processes[thread->process].counts;
	uint64_t before = counts->allocated.count;

	allocate(heap, thread, event, spot);
	if (counts->allocated.count != before && !heap->estimated)
		counts->reallocations++;
}

// A heap is destroyed: all its blocks end. Each block counts as a free, since its life was ended by
// a call.
static void destroy(struct heap *heap, const struct trace_event *event)
{
	struct heap_thread_state *thread = &heap->threads[event->thread];
	struct heap_process_state *process = &heap->processes[thread->process];
	const struct block *block;
	struct blocks *blocks;
	struct blocks_cursor cursor = { 0 };

	if (event->heap >= process->heaps_count)
		return;
	blocks = &process->heaps[event->heap];
	while ((block = blocks_next(blocks, &cursor))) {
		uint64_t size = blocks_size(blocks, block);

		if (block->site == SITE_NONE)
			continue;
		process->counts.frees += weigh(heap, block->site, size).count;
		live_take(heap, thread->process, &thread->bound, block->site, size, event->time_ns);
	}
	blocks_fini(blocks);
	*blocks = (struct blocks){ 0 };
}

// The order matters: what ends goes before what begins, or a realloc in place would find its own
// new block.
void heap_count_event(struct heap *heap, const struct trace_event *event, bool undone,
		      const struct reader_spots *spots)
{
	uint32_t spot = spots ? spots->spot : READER_NO_SPOT;
	struct heap_thread_state *thread;
	struct pending ended;
	unsigned effect = effect_of(event->kind);
	bool call = trace_kind_is_call(event->kind);

	ASSERT(!heap->finished);
	ASSERT(spots || heap->met_count == 0);
	ASSERT(!undone || effect & EFFECT_HALF);
	if (event->thread >= heap->threads_count)
		return;
	if (!(effect & EFFECT_CALL) && event->kind != TRACE_BEFORE) {
		// Of pools and of virtual memory: neither is malloc's.
		heap_pass_time(heap, event->time_ns);
		if (effect & EFFECT_DESTROYS &&
		    heap->threads[event->thread].process < heap->processes_count)
			destroy(heap, event);
		return;
	}
	thread = &heap->threads[event->thread];
	if (thread->process >= heap->processes_count)
		return;
	heap_pass_time(heap, event->time_ns);
	if (event->number < heap->before_end)
		call = false;
	if (call)
		heap->totals.events++;
	if (!heap->processes[thread->process].selected)
		return;
	if (call && thread->selected)
		heap->totals.events_selected++;

	if (effect & EFFECT_HALF && !undone) {
		if (!thread->pending)
			thread->pending = mem_alloc(1, sizeof *thread->pending);
		release(heap, thread, event, event->address, thread->pending, spot);
		thread->pending->active = true;
		return;
	}
	if (effect & EFFECT_ENDS && !undone)
		release(heap, thread, event, effect_ended(event), &ended,
			event->kind == TRACE_REALLOC && spots ? spots->old_spot : spot);
	if (effect & EFFECT_MOVES && effect & EFFECT_BEGINS)
		reallocate(heap, thread, event, spot);
	else if (effect & EFFECT_BEGINS)
		allocate(heap, thread, event, spot);
	if (effect & EFFECT_UNDOES)
		undo(heap, thread, event, spot);
	if (effect & EFFECT_FAILS)
		count_failed(heap, thread, event);
	if (thread->pending)
		thread->pending->active = false;
}

// The next blocks of an iteration, and their sites fetched from memory. 0: that is all.
enum { NEXT_BLOCKS = 32 };

// The sites of many blocks are anywhere in memory: they are fetched 32 at a time. Blocks that no
// site counts are passed over.
static size_t next_blocks(const struct heap *heap, const struct blocks *blocks,
			  struct blocks_cursor *cursor, const struct block *next[NEXT_BLOCKS])
{
	size_t count = 0;

	while (count < NEXT_BLOCKS && (next[count] = blocks_next(blocks, cursor))) {
		if (next[count]->site == SITE_NONE)
			continue;
		mem_expect(&heap->sites[next[count]->site]);
		mem_expect(&heap->sites[next[count]->site].live_at_exit);
		count++;
	}
	return count;
}

// What lived at the end is counted in any case. The level falls only where the process ended: what
// a process held that still ran when the recording ended is in the level to the last.
static void close_block(struct heap *heap, process_id id, const struct block *block, uint64_t size,
			uint64_t time_ns, bool leaves)
{
	struct heap_process_state *process = &heap->processes[id];
	struct weight weight = weigh(heap, block->site, size);

	amount_add(&heap->sites[block->site].live_at_exit, &weight);
	amount_add(&process->counts.live_at_exit, &weight);
	if (heap->variances)
		heap->variances[block->site].live_at_exit += weight.bytes_variance;
	if (leaves)
		live_take(heap, id, &process->exit, block->site, size, time_ns);
}

// What is alive now in a heap of the process was alive at the end of it. `leaves`: it ends with the
// process and leaves the level.
static void close_blocks(struct heap *heap, process_id id, struct blocks *blocks, uint64_t time_ns,
			 bool leaves)
{
	const struct block *next[NEXT_BLOCKS];
	struct blocks_cursor cursor = { 0 };
	size_t count;

	ASSERT(heap->met_count == 0);
	while ((count = next_blocks(heap, blocks, &cursor, next)))
		for (size_t i = 0; i < count; i++)
			close_block(heap, id, next[i], blocks_size(blocks, next[i]), time_ns,
				    leaves);
	blocks_fini(blocks);
	*blocks = (struct blocks){ 0 };
}

// Pools and heaps of a language end with their process as malloc's do.
static void close_process(struct heap *heap, process_id id, uint64_t time_ns, bool leaves)
{
	struct heap_process_state *process = &heap->processes[id];

	heap_send_far(heap);
	close_blocks(heap, id, &process->blocks, time_ns, leaves);
	for (size_t i = 0; i < process->heaps_count; i++)
		close_blocks(heap, id, &process->heaps[i], time_ns, leaves);
	map_fini(&process->inherited);
}

void heap_end_process(struct heap *heap, process_id process, uint64_t time_ns)
{
	close_process(heap, process, time_ns, true);
}

void heap_add_note(struct heap *heap, const struct trace_note *note)
{
	ASSERT(!heap->finished);
	heap_pass_time(heap, note->time_ns);
	if (note->kind == TRACE_NOTE_PROCESS_END && note->process < heap->processes_count)
		heap_hold_end(heap, note->process, note->time_ns);
	else if (note->kind == TRACE_NOTE_LOSS)
		heap->totals.events_lost += note->value;
}

static void sum_counts(struct heap_counts *sum, const struct heap_counts *counts)
{
	sum->before.count += counts->before.count;
	sum->before.bytes += counts->before.bytes;
	sum->allocated.count += counts->allocated.count;
	sum->allocated.bytes += counts->allocated.bytes;
	sum->frees += counts->frees;
	sum->reallocations += counts->reallocations;
	sum->failed += counts->failed;
	sum->refused_frees += counts->refused_frees;
	sum->inherited_frees += counts->inherited_frees;
	sum->orphan_frees += counts->orphan_frees;
	sum->lost_frees += counts->lost_frees;
	sum->temporary.count += counts->temporary.count;
	sum->temporary.bytes += counts->temporary.bytes;
	sum->live_at_exit.count += counts->live_at_exit.count;
	sum->live_at_exit.bytes += counts->live_at_exit.bytes;
}

static void amount_round(struct heap_amount *amount)
{
	amount->count = weight_round(amount->count);
	amount->bytes = weight_round(amount->bytes);
}

static void counts_round(struct heap_counts *counts)
{
	struct heap_amount *const amounts[] = { &counts->before,       &counts->allocated,
						&counts->temporary,    &counts->live,
						&counts->live_at_exit, &counts->peak };

	for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
		amount_round(amounts[i]);
	counts->frees = weight_round(counts->frees);
	counts->lost_frees = weight_round(counts->lost_frees);
}

// A sampled recording: from units to whole blocks and bytes. Rounded once, at the end: sums of
// rounded figures would drift.
static void leave_units(struct heap *heap)
{
	counts_round(&heap->totals.counts);
	heap->totals.peak_low_bytes = weight_round(heap->totals.peak_low_bytes);
	heap->totals.peak_high_bytes = weight_round(heap->totals.peak_high_bytes);
	for (process_id id = 0; id < heap->processes_count; id++)
		counts_round(&heap->processes[id].counts);
	for (size_t i = 1; i < heap->sites_count; i++) {
		struct heap_site *site = &heap->sites[i];

		amount_round(&site->allocated);
		amount_round(&site->temporary);
		amount_round(&site->live);
		amount_round(&site->live_at_exit);
		amount_round(&site->at_peak);
	}
}

// The assertion is the law that heap.h states: what began has ended, was lost, or lives.
void heap_finish(struct heap *heap)
{
	struct heap_counts *sum = &heap->totals.counts;

	if (heap->finished)
		return;
	heap_hold_no_more(heap);
	heap->finished = true;
	for (process_id id = 0; id < heap->processes_count; id++) {
		close_process(heap, id, heap->totals.duration_ns, false);
		sum_counts(sum, &heap->processes[id].counts);
	}
	for (size_t i = 1; i < heap->sites_count; i++)
		heap_settle_site(heap, &heap->sites[i]);
	sum->live = heap->level;
	ASSERT(sum->before.count + sum->allocated.count ==
	       sum->frees + sum->lost_frees + sum->live_at_exit.count);
	bound_finish(&heap->bound);
	heap->totals.peak_low_bytes = heap->bound.low;
	heap->totals.peak_high_bytes = heap->bound.high;
	if (heap->estimated)
		leave_units(heap);
}

// A heap of figures that were kept: it answers as if the trace had just been read, and takes no
// more events.
struct heap *heap_of_figures(struct heap_figures *figures)
{
	struct heap *heap = heap_new(NULL);

	mem_area_fini(&heap->table);
	heap->totals = figures->totals;
	heap->table = figures->sites;
	heap->sites = heap->table.at;
	heap->sites_count = heap->sites_capacity = figures->sites_count + 1;
	heap->processes = mem_alloc(figures->processes_count + 1, sizeof *heap->processes);
	heap->processes_count = figures->processes_count;
	for (size_t i = 0; i < figures->processes_count; i++)
		heap->processes[i].counts = figures->processes[i];
	mem_free(figures->processes);
	heap->variances = figures->variances;
	*figures = (struct heap_figures){ 0 };
	heap->finished = true;
	return heap;
}

bool heap_count_frees(const char *path, uint64_t *frees)
{
	struct err err = { .kind = ERR_NONE };
	struct reader *reader = reader_open(path, &err);
	struct progress progress;
	struct heap *heap;
	bool ok;

	if (!reader)
		return false;
	reader_scan(reader);
	heap = heap_new(NULL);
	progress_begin(&progress, PROGRESS_NONE, "", reader_bytes(reader));
	heap_read(heap, reader, &progress, NULL, NULL);
	progress_end(&progress);
	*frees = heap->totals.counts.frees;
	ok = reader_ok(reader, &err);
	heap_free(heap);
	reader_close(reader);
	return ok;
}

const struct heap_totals *heap_totals(const struct heap *heap)
{
	ASSERT(heap->finished);
	return &heap->totals;
}

uint64_t heap_unjudged_frees(const struct heap *heap)
{
	ASSERT(heap->finished);
	return heap->unjudged_frees;
}

const struct heap_counts *heap_process(const struct heap *heap, process_id process)
{
	ASSERT(heap->finished);
	return process < heap->processes_count ? &heap->processes[process].counts : NULL;
}

const struct heap_site *heap_sites(const struct heap *heap, size_t *count)
{
	ASSERT(heap->finished);
	*count = heap->sites_count - 1;
	return heap->sites + 1;
}

// Site 0, which is none, stays: so the list of sites is there and empty.
void heap_forget_sites(struct heap *heap)
{
	ASSERT(heap->finished);
	mem_area_fini(&heap->table);
	mem_area_grow(&heap->table, sizeof *heap->sites);
	heap->sites = heap->table.at;
	heap->sites_count = heap->sites_capacity = 1;
	mem_free(heap->variances);
	heap->variances = NULL;
}

const struct heap_variance *heap_variances(const struct heap *heap)
{
	ASSERT(heap->finished);
	return heap->variances ? heap->variances + 1 : NULL;
}

struct heap_amount heap_so_far(const struct heap *heap, struct heap_amount amount)
{
	if (heap->estimated)
		amount_round(&amount);
	return amount;
}

struct heap_amount heap_level(const struct heap *heap)
{
	return heap_so_far(heap, heap->level);
}

void heap_peak_so_far(const struct heap *heap, uint64_t *bytes, uint64_t *time_ns)
{
	*bytes = heap_so_far(heap, heap->totals.counts.peak).bytes;
	*time_ns = heap->totals.counts.peak_ns;
}

const struct heap_counts *heap_process_so_far(const struct heap *heap, process_id process)
{
	return process < heap->processes_count ? &heap->processes[process].counts : NULL;
}

const struct heap_site *heap_sites_so_far(const struct heap *heap, size_t *count)
{
	*count = heap->sites_count - 1;
	return heap->sites + 1;
}
