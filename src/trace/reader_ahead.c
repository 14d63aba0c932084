// A ring of chunks between two threads. `filled` is raised by the thread, `given` and `done` by the
// reader, all under one lock; chunk n is at n % READER_AHEAD_CHUNKS. For example filled is 9, given
// is 5, done is 4: the reader is working on chunk 4, and 5 to 8 are ready. The thread may fill up
// to chunk 19 before it has to wait.
//
// Who waits is not woken for one chunk: the thread is told of room only when half of the ring is
// free, and a reader that found none is told when there are four.
#include "trace/reader_ahead.h"

#include "base/mem.h"
#include "os/worker.h"
#include "wire/compiler.h"

// Waking costs some microseconds, a chunk is decoded in ten: who waits for room is woken when half
// of the chunks are free, who waits for chunks when some are filled.
enum { ROOM = READER_AHEAD_CHUNKS / 2, SOME = READER_AHEAD_CHUNKS / 4 };

_Static_assert((int)READER_SPOTS == (int)SPOTS_MAX, "the same spots");

// What is above `worker` belongs to the thread once it runs; what is below is under its lock. The
// memory of `chunks` belongs to the side whose turn it is.
struct reader_ahead {
	struct store store; // its descriptor is borrowed; the size is that of the beginning
	struct walk walk;
	struct walk_loader loader;
	struct columns_decoder decoder;
	struct columns_spots *spots; // NULL: the user asks for none
	struct trace_event run[COLUMNS_ROW_MAX];
	struct reader_ahead_chunk *chunks;

	struct worker worker;
	uint64_t filled, given, done; // chunks that were decoded, were asked for, are done with
	uint64_t wanted;              // the reader waits until so many were decoded
	bool waits;                   // the thread, for room
	bool dry;                     // it has no more
};

static struct reader_ahead_chunk *chunk_at(struct reader_ahead *ahead, uint64_t number)
{
	return &ahead->chunks[number % READER_AHEAD_CHUNKS];
}

// False: it is not wanted any more.
// The thread's: waits while all chunks are full, and then until half of them are free.
static bool wait_for_room(struct reader_ahead *ahead)
{
	bool wanted;

	pthread_mutex_lock(&ahead->worker.lock);
	if (ahead->filled == ahead->done + READER_AHEAD_CHUNKS) {
		ahead->waits = true;
		while (!ahead->worker.over && ahead->filled > ahead->done + ROOM)
			pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
		ahead->waits = false;
	}
	wanted = !ahead->worker.over;
	pthread_mutex_unlock(&ahead->worker.lock);
	return wanted;
}

static void hand_over(struct reader_ahead *ahead)
{
	pthread_mutex_lock(&ahead->worker.lock);
	ASSERT(ahead->filled < ahead->done + READER_AHEAD_CHUNKS);
	ahead->filled++;
	if (ahead->filled == ahead->wanted)
		pthread_cond_broadcast(&ahead->worker.changed);
	pthread_mutex_unlock(&ahead->worker.lock);
}

// The event is the one of this number that was read last, if its address was predicted.
static inline void call_of(struct reader_ahead *ahead, const struct trace_event *event,
			   uint32_t number, struct reader_call *call)
{
	struct columns_spots *spots = ahead->spots;

	call->address = event->address;
	call->size = event->size;
	call->stack = event->stack;
	call->kind = event->kind;
	call->align_log2 = event->align_log2;
	call->old_spot = READER_NO_SPOT;
	if (likely(ahead->decoder.told && number < COLUMNS_ROW_MAX && predict_knows(event->kind))) {
		call->spot = spots->spot[number];
		call->old_spot = spots->old_spot[number];
		return;
	}
	call->spot = spots_of(&spots->spots, event->address);
	if (event->kind == TRACE_REALLOC)
		call->old_spot = spots_of(&spots->spots, event->old_address);
}

// The next run into `calls`.
static uint32_t fill_calls(struct reader_ahead *ahead, struct reader_ahead_chunk *chunk)
{
	uint32_t at = chunk->count, room = READER_AHEAD_EVENTS - at;
	uint32_t run = columns_run(&ahead->decoder, ahead->run,
				   room < COLUMNS_ROW_MAX ? room : COLUMNS_ROW_MAX);

	stack_id stacks = chunk->stacks;

	if (run > 0)
		chunk->events[at] = ahead->run[0];
	for (uint32_t i = 0; i < run && !ahead->decoder.told; i++)
		spots_expect(&ahead->spots->spots, ahead->run[i].address);
	for (uint32_t i = 0; i < run; i++) {
		chunk->first[at + i] = (uint16_t)at;
		call_of(ahead, &ahead->run[i], i, &chunk->calls[at + i]);
		stacks = ahead->run[i].stack > stacks ? ahead->run[i].stack : stacks;
		if (unlikely(ahead->run[i].kind == TRACE_REALLOC))
			chunk->events[at + i] = ahead->run[i];
	}
	chunk->stacks = stacks;
	return run;
}

// A chunk ends when it is full of events, when its room for calls on virtual memory is used up, or
// with the block. `runs` counts down, so that a reader that stops in the middle of a run knows what
// is left of it: a run of 3 is 3, 2, 1.
static void fill(struct reader_ahead *ahead, struct reader_ahead_chunk *chunk)
{
	struct columns_decoder *decoder = &ahead->decoder;
	uint32_t vms = 0;

	chunk->count = 0;
	chunk->result = COLUMNS_EVENT;
	chunk->spotted = ahead->spots != NULL;
	chunk->stacks = 0;
	while (chunk->count < READER_AHEAD_EVENTS && vms < READER_AHEAD_VMS) {
		struct trace_event *event = &chunk->events[chunk->count];
		uint32_t run = chunk->spotted ? fill_calls(ahead, chunk)
					      : columns_run(decoder, event,
							    READER_AHEAD_EVENTS - chunk->count);

		for (uint32_t i = 0; i < run; i++)
			chunk->runs[chunk->count + i] = (uint16_t)(run - i);
		chunk->count += run;
		if (run > 0)
			continue;
		chunk->result = columns_next(decoder, event);
		if (chunk->result != COLUMNS_EVENT)
			break;
		if (chunk->spotted)
			call_of(ahead, event, COLUMNS_ROW_MAX, &chunk->calls[chunk->count]);
		chunk->runs[chunk->count++] = 0;
		if (event->vm) {
			chunk->vms[vms] = *event->vm;
			event->vm = &chunk->vms[vms++];
		}
	}
	ASSERT(chunk->count <= READER_AHEAD_EVENTS && vms <= READER_AHEAD_VMS);
	chunk->number = decoder->number;
	chunk->unknown = decoder->unknown;
}

// All chunks of a block. False: there will be no more.
static bool decode_block(struct reader_ahead *ahead, const struct block *block, uint64_t at)
{
	struct bytes_cursor payload;
	struct err ignored = { 0 };
	bool more = true;

	if (!walk_load(&ahead->loader, &ahead->store, block, at, &payload, &ignored) ||
	    !columns_decoder_init(&ahead->decoder, payload, block->events_count, block->first_event,
				  block->first_ns))
		return false;
	if (ahead->spots)
		spots_begin(&ahead->spots->spots);
	while (more) {
		struct reader_ahead_chunk *chunk;

		if (!wait_for_room(ahead))
			return false;
		chunk = chunk_at(ahead, ahead->filled);
		chunk->at = at;
		fill(ahead, chunk);
		more = chunk->result == COLUMNS_EVENT;
		hand_over(ahead);
	}
	return true;
}

// The last thing that the thread says is that it is dry, so that a reader that waits is woken.
static void *decode(void *context)
{
	struct reader_ahead *ahead = context;
	struct block block;
	uint64_t at;

	while (walk_next(&ahead->walk, &ahead->store, &block, &at))
		if (block.type == BLOCK_EVENTS && !decode_block(ahead, &block, at))
			break;
	pthread_mutex_lock(&ahead->worker.lock);
	ahead->dry = true;
	pthread_cond_broadcast(&ahead->worker.changed);
	pthread_mutex_unlock(&ahead->worker.lock);
	return NULL;
}

struct reader_ahead *reader_ahead_start(const struct store *store, const struct walk *from,
					bool spots)
{
	struct reader_ahead *ahead = mem_alloc(1, sizeof *ahead);

	ahead->store = *store;
	ahead->walk = *from;
	ahead->chunks = mem_alloc(READER_AHEAD_CHUNKS, sizeof *ahead->chunks);
	if (spots)
		ahead->decoder.spots = ahead->spots = mem_alloc(1, sizeof *ahead->spots);
	worker_start(&ahead->worker, decode, ahead);
	if (ahead->worker.thread)
		return ahead;
	reader_ahead_end(ahead);
	return NULL;
}

// The chunk before is done with as soon as the next is asked for: so one chunk of the ring is
// always the reader's. A chunk of another block than the expected one means that the walks
// disagree.
const struct reader_ahead_chunk *reader_ahead_next(struct reader_ahead *ahead, uint64_t at)
{
	const struct reader_ahead_chunk *chunk = NULL;

	ASSERT(ahead->worker.thread);
	pthread_mutex_lock(&ahead->worker.lock);
	ahead->done = ahead->given++;
	if (ahead->waits && ahead->filled <= ahead->done + ROOM)
		pthread_cond_broadcast(&ahead->worker.changed);
	if (ahead->filled < ahead->given)
		ahead->wanted = ahead->given + SOME - 1;
	while (ahead->filled < ahead->wanted && !ahead->dry)
		pthread_cond_wait(&ahead->worker.changed, &ahead->worker.lock);
	if (ahead->filled >= ahead->given)
		chunk = chunk_at(ahead, ahead->given - 1);
	pthread_mutex_unlock(&ahead->worker.lock);
	return chunk && chunk->at == at ? chunk : NULL;
}

uint64_t reader_ahead_number(const struct reader_ahead_chunk *chunk, uint32_t at)
{
	uint32_t first = chunk->spotted && chunk->runs[at] > 0 ? chunk->first[at] : at;

	return chunk->events[first].number + (at - first);
}

void reader_ahead_event(const struct reader_ahead_chunk *chunk, uint32_t at,
			struct trace_event *event)
{
	const struct reader_call *call = &chunk->calls[at];
	const struct trace_event *first = &chunk->events[chunk->first[at]];

	if (!chunk->spotted || chunk->runs[at] == 0 || call->kind == TRACE_REALLOC) {
		*event = chunk->events[at];
		return;
	}
	*event = (struct trace_event){
		.number = reader_ahead_number(chunk, at),
		.time_ns = first->time_ns,
		.address = call->address,
		.size = call->size,
		.thread = first->thread,
		.stack = call->stack,
		.kind = call->kind,
		.align_log2 = call->align_log2,
	};
}

void reader_ahead_end(struct reader_ahead *ahead)
{
	if (!ahead)
		return;
	worker_end(&ahead->worker);
	walk_loader_fini(&ahead->loader);
	columns_decoder_fini(&ahead->decoder);
	if (ahead->spots)
		spots_fini(&ahead->spots->spots);
	MEM_FREE(ahead->spots, ahead->chunks, ahead);
}
