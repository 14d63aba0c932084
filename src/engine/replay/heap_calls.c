// Runs of calls, whose blocks are near (heap_own.h), counted with the sums of a run at hand: nearly
// all that a trace has. What heap.c does event by event is what each of these comes to.
//
// For example malloc(40), malloc(24) and free of the second, of one thread at one time: the level
// is asked for peaks when the sum is 40 and 64, which it was not before in the run; and it, the
// process's figures and the bound (bound.h) are changed once, by 40 bytes that were 64 at most.
#include "base/mem.h"
#include "engine/replay/heap_own.h"

// ---- What is near ----

enum { FAR_BATCH = 32 }; // blocks whose tables are fetched from memory together

// Those that live go to their tables, FAR_BATCH at a time.
void heap_send_far(struct heap *heap)
{
	if (heap->met_count == 0)
		return;
	for (uint32_t at = 0; at < heap->met_count;) {
		struct blocks_hint hints[FAR_BATCH];
		const struct heap_near *live[FAR_BATCH];
		size_t count = 0;
		bool added;

		for (; count < FAR_BATCH && at < heap->met_count; at++) {
			live[count] = &heap->near[heap->met[at]];
			if (live[count]->block.owner == 0)
				continue;
			blocks_expect_region(&heap->processes[live[count]->process].blocks,
					     live[count]->address);
			count++;
		}
		for (size_t i = 0; i < count; i++)
			hints[i] = blocks_expect(&heap->processes[live[i]->process].blocks,
						 live[i]->address);
		for (size_t i = 0; i < count; i++) {
			*blocks_put_at(&heap->processes[live[i]->process].blocks, live[i]->address,
				       hints[i], &added) = live[i]->block;
			ASSERT(added);
		}
	}
	heap->met_count = 0;
	heap->near_turn++;
}

void heap_near_of(struct heap *heap, uint64_t block)
{
	ASSERT(block != 0);
	if (block == heap->near_block)
		return;
	heap_send_far(heap);
	heap->near_block = block;
	if (heap->near)
		return;
	heap->near = mem_alloc(READER_SPOTS + 1, sizeof *heap->near);
	heap->met = mem_alloc(READER_SPOTS, sizeof *heap->met);
}

void heap_bring_near(struct heap *heap, process_id process, uint32_t spot, uint64_t address,
		     struct blocks_hint hint)
{
	struct heap_near *near = &heap->near[spot];

	ASSERT(!heap_is_near(heap, spot) && heap->met_count < READER_SPOTS);
	near->address = address;
	near->process = process;
	near->turn = heap->near_turn;
	if (!blocks_take_at(&heap->processes[process].blocks, address, hint, &near->block))
		near->block = blocks_small(address, 0);
	heap->met[heap->met_count++] = spot;
}

static struct trace_event event_of(const struct reader_calls *calls, uint32_t i)
{
	if (calls->calls[i].kind == TRACE_REALLOC)
		return calls->events[i];
	return (struct trace_event){
		.number = calls->number + i,
		.time_ns = calls->time_ns,
		.address = calls->calls[i].address,
		.size = calls->calls[i].size,
		.thread = calls->thread,
		.stack = calls->calls[i].stack,
		.kind = calls->calls[i].kind,
	};
}

// What a row of plain calls has changed of the heap, its process and its thread, and is not in
// their figures yet.
struct row {
	uint64_t begun, begun_bytes, ended, passed; // passed: the query leaves them out
	int64_t sum, smallest, largest;             // of live bytes; the least and the most it was
};

// How far the row's sum may rise before it has to be asked whether that is a peak.
static int64_t row_room(const struct heap *heap, const struct heap_counts *counts)
{
	int64_t process = (int64_t)(counts->peak.bytes - counts->live.bytes);
	int64_t all = (int64_t)(heap->totals.counts.peak.bytes - heap->level.bytes);

	return process < all ? process : all;
}

static void row_peak(struct heap *heap, struct heap_counts *counts, const struct row *row,
		     uint64_t time_ns, uint64_t number)
{
	const struct trace_event event = { .time_ns = time_ns, .number = number };
	uint64_t count = row->begun - row->ended, bytes = (uint64_t)row->sum;
	struct heap_amount live = { counts->live.count + count, counts->live.bytes + bytes };
	struct heap_amount level = { heap->level.count + count, heap->level.bytes + bytes };

	if (live.bytes > counts->peak.bytes)
		heap_raise_peak(counts, &live, &event);
	if (level.bytes > heap->totals.counts.peak.bytes) {
		heap_raise_peak(&heap->totals.counts, &level, &event);
		heap->peak_epoch++;
	}
}

static void row_finish(struct heap *heap, struct heap_thread_state *thread, const struct row *row,
		       uint64_t time_ns)
{
	struct heap_counts *counts = &heap->processes[thread->process].counts;
	uint64_t count = row->begun - row->ended, bytes = (uint64_t)row->sum;
	uint64_t events = row->begun + row->ended + row->passed;

	if (events > 0 && thread->pending)
		thread->pending->active = false;
	heap->totals.events += events;
	heap->totals.events_selected += events;
	if (row->begun + row->ended == 0)
		return;
	counts->allocated.count += row->begun;
	counts->allocated.bytes += row->begun_bytes;
	counts->frees += row->ended;
	counts->live.count += count;
	counts->live.bytes += bytes;
	heap->level.count += count;
	heap->level.bytes += bytes;
	bound_change_row(&heap->bound, &thread->bound, time_ns, row->sum, row->smallest,
			 row->largest);
}

// The site of a stack, if it is the usual one of this process; SITE_NONE: the query leaves it out.
// SITE_UNSEEN: that is for find_other_site to say.
static inline uint32_t usual_site(const struct heap *heap, process_id process, stack_id stack)
{
	uint32_t site;

	if (stack >= heap->stack_site_capacity)
		return SITE_UNSEEN;
	site = heap->stack_site[stack];
	if (site == SITE_UNSEEN || site == SITE_UNSELECTED)
		return site;
	return heap->sites[site].process == process ? site : SITE_UNSEEN;
}

static inline void site_begin(struct heap *heap, struct heap_site *site, uint64_t size,
			      uint64_t time_ns)
{
	heap_settle_site(heap, site);
	if (site->allocated.count == 0)
		site->first_ns = time_ns;
	site->last_ns = time_ns;
	if (size > site->largest_bytes)
		site->largest_bytes = size;
	site->allocated.count++;
	site->allocated.bytes += size;
	site->live.count++;
	site->live.bytes += size;
}

// Count calls from number `i` on as allocate() and release() would, up to one that is not as nearly
// all are; returns its number.
static uint32_t add_plain(struct heap *heap, struct heap_thread_state *thread,
			  const struct reader_calls *calls, uint32_t i)
{
	struct heap_process_state *process = &heap->processes[thread->process];
	struct heap_counts *counts = &process->counts;
	int64_t room = row_room(heap, counts);
	struct row row = { 0 };

	_Static_assert(SITE_UNSELECTED == SITE_NONE, "usual_site gives either");
	for (; i < calls->count; i++) {
		const struct reader_call *call = &calls->calls[i];
		struct heap_near *near = &heap->near[call->spot];
		uint64_t size = call->size;
		uint32_t index = near->block.site;
		struct heap_site *site;

		if (near->turn != heap->near_turn || near->process != thread->process)
			break;
		if (call->kind <= TRACE_ALIGNED) {
			index = usual_site(heap, thread->process, call->stack);
			if (index == SITE_UNSEEN || near->block.owner != 0 ||
			    !blocks_is_small(size))
				break;
			near->block = blocks_small(call->address, size);
			near->block.site = index;
			near->block.owner = calls->thread + 1;
			thread->last_address = call->address;
			thread->allocated = true;
			if (index == SITE_NONE) {
				row.passed++;
				continue;
			}
			site_begin(heap, &heap->sites[index], size, calls->time_ns);
			row.begun++;
			row.begun_bytes += size;
			row.sum += (int64_t)size;
			if (row.sum <= row.largest)
				continue;
			row.largest = row.sum;
			if (row.sum <= room)
				continue;
			row_peak(heap, counts, &row, calls->time_ns, calls->number + i);
			room = row_room(heap, counts);
			continue;
		}
		size = near->block.owner != 0 ? blocks_size(&process->blocks, &near->block) : 0;
		if (call->kind != TRACE_FREE || near->block.owner == 0 || !blocks_is_small(size))
			break;
		if (index == SITE_NONE) {
			near->block.owner = 0;
			row.passed++;
			continue;
		}
		site = &heap->sites[index];
		heap_settle_site(heap, site);
		site->live.count--;
		site->live.bytes -= size;
		row.ended++;
		row.sum -= (int64_t)size;
		if (row.sum < row.smallest)
			row.smallest = row.sum;
		if (near->block.owner == calls->thread + 1 && thread->allocated &&
		    thread->last_address == call->address) {
			counts->temporary.count++;
			counts->temporary.bytes += size;
			site->temporary.count++;
			site->temporary.bytes += size;
		}
		near->block.owner = 0;
	}
	row_finish(heap, thread, &row, calls->time_ns);
	return i;
}

// Events of one thread and one time. Most are plain: all of the thread is selected, nothing is a
// sample, and no filter asks about single events. What is not goes the long way.
void heap_add_calls(struct heap *heap, const struct reader_calls *calls)
{
	struct heap_thread_state *thread = &heap->threads[calls->thread];
	bool plain = thread->process < heap->processes_count && thread->selected &&
		     heap->processes[thread->process].selected && !heap->estimated &&
		     calls->number >= heap->before_end && !(heap->query && heap->query->event);

	ASSERT(calls->count > 0 && calls->thread < heap->threads_count);
	ASSERT(calls->block == heap->near_block);
	for (uint32_t i = 0; i < calls->count; i++) {
		struct reader_spots spots;
		struct trace_event event;

		if (plain && heap->held_count == 0)
			i = add_plain(heap, thread, calls, i);
		if (i == calls->count)
			break;
		event = event_of(calls, i);
		spots = (struct reader_spots){ calls->block, calls->calls[i].spot,
					       calls->calls[i].old_spot };
		heap_add_at(heap, &event, &spots);
	}
	heap_pass_time(heap, calls->time_ns);
}
