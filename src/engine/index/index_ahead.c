// Reads the trace ahead of the pairing, in a thread of its own, a batch of events at a time.
//
// Two things are expensive for an event: decoding it, and finding its cell in a dictionary that
// is larger than the caches. Both need only what comes before in the trace, and nothing of what
// the pairing knows, so this thread does them while the other pairs the batch before. There are
// INDEX_AHEAD_BATCHES batches in a ring. `filled` counts those that were read, `given` those that
// were handed out, `done` those that came back. With four of them:
//
//     filled 6, given 4, done 3     batches 4 and 5 are ready, batch 3 is being paired,
//                                   and batch 6 may be read into the place of batch 2
//     filled 7, given 4, done 3     all are full: the thread waits until the next is asked for
//
// A batch *holds* where what it borrows from the reader (the text of a note, the pages of an
// event of virtual memory) is overwritten when the reader goes on. It ends there, and nothing is
// read until it came back: in the first line above, if batch 5 held, batch 6 would not be begun.
//
// Without a thread (there may be none to have) index_ahead_next reads the batch itself. Cells are
// looked for by 32 events at a time, in four loops that each fetch from memory what the loop
// before made known: a lookup that misses the caches costs some 80 ns, and 32 at once cost little
// more than one.
#include "engine/index/index_ahead.h"

#include "base/mem.h"
#include "trace/effect.h"

enum {
	ROUND = 32,                     // events whose cells are looked for together
	ROOM = INDEX_AHEAD_BATCHES / 2, // batches that are free when the thread is woken
	SOME = INDEX_AHEAD_BATCHES / 4, // that there are when who waits for one is
};

// What is read at once.
struct index_ahead_round {
	struct trace_event events[ROUND];
	process_id process[ROUND];
	uint32_t count;
};

static void add_run(struct index_ahead_batch *batch, const struct index_ahead_run *run)
{
	struct index_ahead_run *end = &batch->runs[batch->runs_count];

	if (batch->runs_count > 0 && end[-1].thread == run->thread &&
	    end[-1].time_ns == run->time_ns && end[-1].number + end[-1].count == run->number)
		end[-1].count += run->count;
	else
		batch->runs[batch->runs_count++] = *run;
}

// What was read to the round's end is of it, if its thread is known. All are of one thread.
static void take(struct index_ahead *ahead, struct index_ahead_batch *batch, uint32_t count)
{
	const struct reader *reader = ahead->reader;
	struct index_ahead_round *round = ahead->round;
	struct trace_event *events = &round->events[round->count];
	struct index_ahead_run run = { .time_ns = events->time_ns,
				       .number = events->number,
				       .thread = events->thread,
				       .count = count };

	ASSERT(count > 0 && round->count + count <= ROUND);
	if (run.thread >= ahead->threads_count)
		return;
	run.process = reader_thread(reader, run.thread)->process;
	if (run.process >= ahead->processes_count)
		return;
	run.forked = trace_start_inherits(reader_process(reader, run.process)->start);
	for (uint32_t i = 0; i < count; i++) {
		if (events[i].stack >= reader_stacks_count(reader))
			events[i].stack = 0;
		if (events[i].heap && events[i].heap >= reader_heaps_count(reader))
			events[i].heap = 0;
		round->process[round->count + i] = run.process;
	}
	batch->holds = events[count - 1].vm != NULL;
	round->count += count;
	add_run(batch, &run);
}

// Up to ROUND events; fewer where something else comes first, which is returned. What an event of
// virtual memory borrows lives only until the next is read: no run has one.
static enum reader_item read_round(struct index_ahead *ahead, struct index_ahead_batch *batch)
{
	struct index_ahead_round *round = ahead->round;
	size_t room = ahead->full - batch->count;
	uint32_t end = room < ROUND ? (uint32_t)room : ROUND;

	round->count = 0;
	while (round->count < end && !batch->holds) {
		struct trace_event *events = &round->events[round->count];
		uint32_t run = reader_run(ahead->reader, events, end - round->count);

		if (run == 0) {
			enum reader_item item = reader_next(ahead->reader, events, &batch->note);

			if (item != READER_EVENT)
				return item;
			run = 1;
		}
		take(ahead, batch, run);
	}
	return READER_EVENT;
}

// Each loop fetches what the one before made known.
static void expect_cells(const struct cells *cells, const struct index_ahead_round *round)
{
	enum { LARGE = 1 << 15 }; // sites; what is smaller is in the caches
	const struct trace_event *events = round->events, *end = events + round->count;

	if (cells->sites_count < LARGE)
		return;
	for (const struct trace_event *event = events; event < end; event++)
		if (effect_of(event->kind) & EFFECT_BEGINS)
			cells_expect_stack(cells, event->stack);
	for (const struct trace_event *event = events; event < end; event++)
		if (effect_of(event->kind) & EFFECT_BEGINS)
			cells_expect_site(cells, event->stack);
	for (const struct trace_event *event = events; event < end; event++)
		if (effect_of(event->kind) & EFFECT_BEGINS)
			cells_expect_slot(cells, event->stack, event->size);
	for (const struct trace_event *event = events; event < end; event++)
		if (effect_of(event->kind) & EFFECT_BEGINS)
			cells_expect_cell(cells, event->stack, event->size);
}

// An event that begins no allocation has cell 0, which counts for nothing.
static uint32_t find_cell(struct cells *cells, const struct trace_event *event, process_id process)
{
	const struct cells_site site = { .process = process,
					 .thread = event->thread,
					 .stack = event->stack,
					 .heap = event->heap };

	return cells_add_cell(cells, cells_add_site(cells, &site), event->size);
}

// The round into the batch.
static void put_round(struct index_ahead *ahead, struct index_ahead_batch *batch)
{
	const struct index_ahead_round *round = ahead->round;

	ASSERT(batch->count + round->count <= ahead->full);
	for (uint32_t i = 0; i < round->count; i++) {
		const struct trace_event *event = &round->events[i];
		struct index_ahead_event *to = &batch->events[batch->count++];
		unsigned effect = effect_of(event->kind);

		*to = (struct index_ahead_event){ .address = event->address };
		if (effect & EFFECT_BEGINS)
			to->cell = find_cell(ahead->cells, event, round->process[i]);
		if (event->heap == 0 && effect == (EFFECT_BEGINS | EFFECT_CALL)) {
			to->what = INDEX_AHEAD_BEGINS;
		} else if (event->heap != 0 || effect != (EFFECT_ENDS | EFFECT_CALL)) {
			to->what = INDEX_AHEAD_OTHERS + (uint32_t)batch->others_count;
			batch->others[batch->others_count++] = *event;
		}
	}
}

// Reads one batch. It ends when it is full, when the trace ends or has something else than an
// event, or with an event that borrows.
static void fill(struct index_ahead *ahead, struct index_ahead_batch *batch)
{
	ASSERT(ahead->full > 0);
	batch->place = reader_place(ahead->reader);
	batch->count = batch->runs_count = batch->others_count = 0;
	batch->item = READER_EVENT;
	batch->holds = false;
	while (batch->count < ahead->full && !batch->holds && batch->item == READER_EVENT) {
		batch->item = read_round(ahead, batch);
		expect_cells(ahead->cells, ahead->round);
		put_round(ahead, batch);
	}
	batch->holds |= batch->item != READER_EVENT;
	batch->position = reader_position(ahead->reader);
	batch->memory_bytes =
		cells_bytes(ahead->cells) +
		reader_stacks_count(ahead->reader) * (uint64_t)sizeof(struct trace_stack) +
		reader_frames_count(ahead->reader) * (uint64_t)sizeof(struct trace_frame);
	batch->stacks_count = reader_stacks_count(ahead->reader) - 1;
	batch->sites_count = ahead->cells->sites_count - 1;
	batch->kinds_count = ahead->cells->cells_count - 1;
	batch->one_process = cells_of_one_process(ahead->cells);
}

static struct index_ahead_batch *batch_at(struct index_ahead *ahead, uint64_t number)
{
	ASSERT(ahead->full > 0);
	return &ahead->batches[number % INDEX_AHEAD_BATCHES];
}

// Whether the next batch may be read: there is a free one, and the one before does not hold.
static bool may_fill(struct index_ahead *ahead)
{
	if (ahead->given == 0 || ahead->filled == ahead->done + INDEX_AHEAD_BATCHES)
		return false;
	return ahead->filled == ahead->done || !batch_at(ahead, ahead->filled - 1)->holds;
}

// Whether it is worth waking for.
static bool is_due(const struct index_ahead *ahead)
{
	return ahead->rests || ahead->filled < ahead->done + ROOM;
}

// The thread: it reads without the lock, and has it only to change the counts. Waking costs some
// microseconds, a batch is read in fifty: it fills the ring, and waits until half of it is free.
// Who found none is woken when there are some, or when no more can be read.
static void *fill_batches(void *context)
{
	struct index_ahead *ahead = context;

	pthread_mutex_lock(&ahead->worker.lock);
	while (!ahead->worker.over) {
		if (!may_fill(ahead)) {
			ahead->waits = true;
			pthread_cond_broadcast(&ahead->worker.changed);
			do
				pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
			while (!ahead->worker.over && !(may_fill(ahead) && is_due(ahead)));
			ahead->waits = false;
			continue;
		}
		pthread_mutex_unlock(&ahead->worker.lock);
		fill(ahead, batch_at(ahead, ahead->filled));
		pthread_mutex_lock(&ahead->worker.lock);
		ahead->filled++;
		if (ahead->filled == ahead->wanted)
			pthread_cond_broadcast(&ahead->worker.changed);
	}
	pthread_mutex_unlock(&ahead->worker.lock);
	return NULL;
}

// All buffers are made here, once, and go round between the two threads.
void index_ahead_start(struct index_ahead *ahead, struct reader *reader, struct cells *cells,
		       size_t batch_events)
{
	ASSERT(batch_events > 0);
	ASSERT(cells->sites_count > 0 && cells->cells_count > 0);
	*ahead = (struct index_ahead){ .reader = reader, .cells = cells, .full = batch_events };
	for (unsigned i = 0; i < INDEX_AHEAD_BATCHES; i++) {
		struct index_ahead_batch *batch = &ahead->batches[i];

		batch->events = mem_alloc(batch_events, sizeof *batch->events);
		batch->runs = mem_alloc(batch_events, sizeof *batch->runs);
		batch->others = mem_alloc(batch_events, sizeof *batch->others);
	}
	ahead->round = mem_alloc(1, sizeof *ahead->round);
	worker_start(&ahead->worker, fill_batches, ahead);
}

const struct index_ahead_batch *index_ahead_next(struct index_ahead *ahead)
{
	ASSERT(ahead->reader);
	ASSERT(ahead->given == ahead->done || ahead->given == ahead->done + 1);
	pthread_mutex_lock(&ahead->worker.lock);
	ahead->done = ahead->given++;
	if (ahead->waits && may_fill(ahead) && is_due(ahead))
		pthread_cond_broadcast(&ahead->worker.changed);
	if (ahead->filled < ahead->given)
		ahead->wanted = ahead->given + SOME - 1;
	while (ahead->worker.thread &&
	       (ahead->filled < ahead->given || (ahead->filled < ahead->wanted && !ahead->waits)))
		pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
	pthread_mutex_unlock(&ahead->worker.lock);
	if (!ahead->worker.thread)
		fill(ahead, batch_at(ahead, ahead->filled++));
	return batch_at(ahead, ahead->given - 1);
}

void index_ahead_rest(struct index_ahead *ahead)
{
	if (!ahead->worker.thread)
		return;
	pthread_mutex_lock(&ahead->worker.lock);
	ahead->rests = true;
	pthread_cond_broadcast(&ahead->worker.changed);
	while (may_fill(ahead))
		pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
	ahead->rests = false;
	pthread_mutex_unlock(&ahead->worker.lock);
}

struct reader_place index_ahead_place(const struct index_ahead *ahead)
{
	if (ahead->filled == ahead->given)
		return reader_place(ahead->reader);
	return ahead->batches[ahead->given % INDEX_AHEAD_BATCHES].place;
}

void index_ahead_finish(struct index_ahead *ahead)
{
	if (!ahead->reader)
		return;
	worker_end(&ahead->worker);
	for (unsigned i = 0; i < INDEX_AHEAD_BATCHES; i++) {
		struct index_ahead_batch *batch = &ahead->batches[i];

		MEM_FREE(batch->events, batch->runs, batch->others);
	}
	mem_free(ahead->round);
	*ahead = (struct index_ahead){ 0 };
}
