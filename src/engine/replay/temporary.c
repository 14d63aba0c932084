// A block is temporary if the thread that allocated it frees it before it allocates again. So only
// the latest block of each thread can be one: the table of a heap has these and no others. For
// example, of one thread:
//
//     malloc A      A is its latest
//     free A        A was the latest: temporary
//     malloc B
//     malloc C      B can be temporary no more, and goes out of the table
//     free B        not there: nothing
//     realloc C, D  C ends as the latest: temporary; D is the latest now
//
// The other way of a realloc, in two halves, keeps what the first has ended: if it failed, what
// was reported is taken back, and the block is the latest again, unless its thread has allocated
// meanwhile.
#include "engine/replay/temporary.h"

#include "base/mem.h"
#include "engine/replay/blocks.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

// A thread's latest allocation. It lives as long as its address is in the table of its heap, with
// the thread for owner.
struct latest {
	uint64_t address, number; // number: how many the thread had made then; 0: none
	heap_id heap;
	stack_id stack;
	bool selected;
};

// The first half of a realloc whose second half may still come.
struct pending {
	bool active;
	bool known;     // it ended `owner`'s latest block
	bool temporary; // which was told as one
	thread_id owner;
	struct latest latest;
	uint64_t size;
};

struct thread_state {
	process_id process;
	bool selected;
	struct latest latest;
	struct pending pending;
};

struct process_state {
	struct blocks *heaps; // by heap id: the latest blocks of threads, by address
	size_t heaps_count, heaps_capacity;
	bool selected;
};

struct temporary {
	const struct query *query;               // borrowed; NULL: everything
	const struct temporary_visitor *visitor; // borrowed
	struct process_state *processes;
	size_t processes_count, processes_capacity;
	struct thread_state *threads;
	size_t threads_count, threads_capacity;
};

struct temporary *temporary_new(const struct query *query, const struct temporary_visitor *visitor)
{
	struct temporary *temporary = mem_alloc(1, sizeof *temporary);

	ASSERT(visitor);
	temporary->query = query;
	temporary->visitor = visitor;
	return temporary;
}

static void forget_heap(struct blocks *blocks)
{
	blocks_fini(blocks);
	*blocks = (struct blocks){ 0 };
}

static void forget_heaps(struct process_state *process)
{
	for (size_t i = 0; i < process->heaps_count; i++)
		forget_heap(&process->heaps[i]);
}

void temporary_free(struct temporary *temporary)
{
	if (!temporary)
		return;
	for (size_t i = 0; i < temporary->processes_count; i++) {
		forget_heaps(&temporary->processes[i]);
		mem_free(temporary->processes[i].heaps);
	}
	MEM_FREE(temporary->processes, temporary->threads, temporary);
}

void temporary_add_process(struct temporary *temporary)
{
	process_id id = (process_id)temporary->processes_count++;

	MEM_ROOM(temporary->processes, temporary->processes_capacity, temporary->processes_count);
	temporary->processes[id] = (struct process_state){
		.selected = !temporary->query || query_has_process(temporary->query, id),
	};
}

void temporary_add_thread(struct temporary *temporary, process_id process)
{
	thread_id id = (thread_id)temporary->threads_count++;

	ASSERT(temporary->threads_count < TRACE_NONE);
	MEM_ROOM(temporary->threads, temporary->threads_capacity, temporary->threads_count);
	temporary->threads[id] = (struct thread_state){
		.process = process,
		.selected = !temporary->query || query_has_thread(temporary->query, id),
	};
}

static struct blocks *blocks_of(struct process_state *process, heap_id heap)
{
	if (heap >= process->heaps_count) {
		(void)MEM_REACH(process->heaps, process->heaps_capacity, heap);
		process->heaps_count = heap + (size_t)1;
	}
	return &process->heaps[heap];
}

// `owner`'s latest block is there, where another one may have been: that one's end was not seen.
static void put_block(struct blocks *blocks, const struct latest *latest, thread_id owner,
		      uint64_t size)
{
	bool added;
	struct block *block = blocks_put(blocks, latest->address, &added);

	ASSERT(latest->number > 0);
	block->owner = owner + 1;
	block->site = 0;
	blocks_set_size(blocks, block, size);
}

// The new block is its thread's latest, whether the query selects it or not: one that it leaves out
// still ends the former one's chance.
static void allocate(struct temporary *temporary, struct thread_state *thread,
		     const struct trace_event *event)
{
	struct process_state *process = &temporary->processes[thread->process];
	struct latest *latest = &thread->latest;

	ASSERT(thread->process < temporary->processes_count);
	// Its former one can be temporary no more.
	if (latest->number) {
		struct blocks *former = blocks_of(process, latest->heap);
		const struct block *block = blocks_find(former, latest->address);
		struct block taken;
		uint64_t size;

		if (block && block->owner == event->thread + 1)
			blocks_take(former, latest->address, &taken, &size);
	}
	*latest = (struct latest){
		.address = event->address,
		.number = latest->number + 1,
		.heap = event->heap,
		.stack = event->stack,
		.selected = thread->selected && query_has_event(temporary->query, event),
	};
	put_block(blocks_of(process, event->heap), latest, event->thread, event->size);
}

// A block that is in the table was its owner's latest; it is temporary if that is the thread that
// frees it. What would be needed to take that back is left in `pending`; this does not make it
// active.
static void release(struct temporary *temporary, struct thread_state *thread,
		    const struct trace_event *event, uint64_t address, struct pending *pending)
{
	struct process_state *process = &temporary->processes[thread->process];
	const struct temporary_visitor *visitor = temporary->visitor;
	struct block block;

	ASSERT(thread->process < temporary->processes_count);
	pending->active = pending->temporary = false;
	pending->known =
		blocks_take(blocks_of(process, event->heap), address, &block, &pending->size);
	if (!pending->known)
		return;
	pending->owner = block.owner - 1;
	ASSERT(pending->owner < temporary->threads_count);
	pending->latest = temporary->threads[pending->owner].latest;
	if (pending->owner != event->thread || !pending->latest.selected ||
	    !query_has_stack(temporary->query, pending->latest.stack))
		return;
	pending->temporary = true;
	visitor->visit(visitor->context, thread->process, pending->latest.stack, pending->size,
		       false);
}

// The realloc failed: what its first half ended lives on. It is the latest again only if its thread
// has allocated nothing since: their numbers are the same then.
static void undo(struct temporary *temporary, struct thread_state *thread,
		 const struct trace_event *event)
{
	const struct temporary_visitor *visitor = temporary->visitor;
	const struct pending *pending = &thread->pending;
	const struct latest *latest = &pending->latest;

	ASSERT(thread->process < temporary->processes_count);
	if (!pending->active || !pending->known || latest->address != event->address)
		return;
	if (pending->temporary)
		visitor->visit(visitor->context, thread->process, latest->stack, pending->size,
			       true);
	if (temporary->threads[pending->owner].latest.number == latest->number)
		put_block(blocks_of(&temporary->processes[thread->process], latest->heap), latest,
			  pending->owner, pending->size);
}

// A heap is destroyed: all its blocks end. Malloc's never is.
static void destroy(struct temporary *temporary, const struct trace_event *event)
{
	process_id process = temporary->threads[event->thread].process;

	if (event->heap > 0 && event->heap < temporary->processes[process].heaps_count)
		forget_heap(&temporary->processes[process].heaps[event->heap]);
}

// In the order of effects: a heap that goes, what ends, what begins, what is taken back.
void temporary_add_event(struct temporary *temporary, const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);
	struct thread_state *thread;
	struct pending ended;

	if (event->thread >= temporary->threads_count ||
	    temporary->threads[event->thread].process >= temporary->processes_count)
		return;
	thread = &temporary->threads[event->thread];
	if (effect & EFFECT_DESTROYS)
		destroy(temporary, event);
	if (!(effect & EFFECT_CALL) || !temporary->processes[thread->process].selected)
		return;
	if (effect & EFFECT_ENDS)
		release(temporary, thread, event, effect_ended(event),
			effect & EFFECT_HALF ? &thread->pending : &ended);
	if (effect & EFFECT_BEGINS)
		allocate(temporary, thread, event);
	if (effect & EFFECT_UNDOES)
		undo(temporary, thread, event);
	thread->pending.active = effect & EFFECT_HALF;
}

void temporary_add_note(struct temporary *temporary, const struct trace_note *note)
{
	if (note->kind == TRACE_NOTE_PROCESS_END && note->process < temporary->processes_count)
		forget_heaps(&temporary->processes[note->process]);
}

// Learn of what the reader has met since the last time.
static void learn(struct temporary *temporary, const struct reader *reader)
{
	while (temporary->processes_count < reader_processes_count(reader))
		temporary_add_process(temporary);
	while (temporary->threads_count < reader_threads_count(reader)) {
		thread_id id = (thread_id)temporary->threads_count;

		temporary_add_thread(temporary, reader_thread(reader, id)->process);
	}
}

void temporary_read(struct reader *reader, const struct query *query,
		    const struct temporary_visitor *visitor, struct progress *progress)
{
	struct temporary *temporary;
	struct reader_runs runs = { .reader = reader, .progress = progress };
	enum reader_item item = READER_EVENT;

	if (reader_is_estimated(reader))
		return;
	temporary = temporary_new(query, visitor);
	while (item != READER_END) {
		item = reader_runs_next(&runs);
		learn(temporary, reader);
		for (uint32_t i = 0; i < runs.count; i++)
			temporary_add_event(temporary, &runs.events[i]);
		if (item == READER_NOTE)
			temporary_add_note(temporary, &runs.note);
	}
	temporary_free(temporary);
}
