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

// Waking costs some microseconds, a chunk is decoded in ten: who waits for room is woken when half
// of the chunks are free, who waits for chunks when some are filled.
enum { ROOM = READER_AHEAD_CHUNKS / 2, SOME = READER_AHEAD_CHUNKS / 4 };

// What is above `worker` belongs to the thread once it runs; what is below is under its lock. The
// memory of `chunks` belongs to the side whose turn it is.
struct reader_ahead {
	struct store store; // its descriptor is borrowed; the size is that of the beginning
	struct walk walk;
	struct walk_loader loader;
	struct columns_decoder decoder;
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

// A chunk ends when it is full of events, when its room for calls on virtual memory is used up, or
// with the block. `runs` counts down, so that a reader that stops in the middle of a run knows what
// is left of it: a run of 3 is 3, 2, 1.
static void fill(struct reader_ahead *ahead, struct reader_ahead_chunk *chunk)
{
	struct columns_decoder *decoder = &ahead->decoder;
	uint32_t vms = 0;

	chunk->count = 0;
	chunk->result = COLUMNS_EVENT;
	while (chunk->count < READER_AHEAD_EVENTS && vms < READER_AHEAD_VMS) {
		struct trace_event *event = &chunk->events[chunk->count];
		uint32_t run = columns_run(decoder, event, READER_AHEAD_EVENTS - chunk->count);

		for (uint32_t i = 0; i < run; i++)
			chunk->runs[chunk->count + i] = (uint16_t)(run - i);
		chunk->count += run;
		if (run > 0)
			continue;
		chunk->result = columns_next(decoder, event);
		if (chunk->result != COLUMNS_EVENT)
			break;
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

struct reader_ahead *reader_ahead_start(const struct store *store, const struct walk *from)
{
	struct reader_ahead *ahead = mem_alloc(1, sizeof *ahead);

	ahead->store = *store;
	ahead->walk = *from;
	ahead->chunks = mem_alloc(READER_AHEAD_CHUNKS, sizeof *ahead->chunks);
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

void reader_ahead_end(struct reader_ahead *ahead)
{
	if (!ahead)
		return;
	worker_end(&ahead->worker);
	walk_loader_fini(&ahead->loader);
	columns_decoder_fini(&ahead->decoder);
	MEM_FREE(ahead->chunks, ahead);
}
