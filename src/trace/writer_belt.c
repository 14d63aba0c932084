// A ring of chunks between two threads. `given` is raised by the caller, `done` by the thread, both
// under one lock; chunk n is at n % WRITER_BELT_CHUNKS. The caller fills chunk `given`, the thread
// takes those from `done` to there. For example given is 9 and done is 5: the thread is in chunk 5,
// 6 to 8 are full, and the caller fills 9.
//
// In a chunk items follow each other, each behind a head that says what it is. A row takes what it
// has and not what it has room for: 20 events that begin a block are 420 bytes of its 4 KB.
// Definitions stay where they are, and only their buffers change hands.
//
// Who waits is not woken for one chunk: the thread is told when there are WAKE, or when the caller
// waits for it; the caller, when there are as few as it wants.
#include "trace/writer_belt.h"

#include "os/worker.h"
#include "wire/compiler.h"

#include <stdatomic.h>

enum { WAKE = 4, DEFS_MAX = 4 };

enum item { ITEM_EVENT, ITEM_ROW, ITEM_ECHO, ITEM_DEFS, ITEM_CUT };

struct head {
	uint64_t time_ns; // of ITEM_EVENT and ITEM_CUT
	uint32_t item;
	uint32_t times; // of ITEM_ECHO
};

// What a row has before its fields, and at most with them.
enum {
	ROW_HEAD_BYTES = offsetof(struct columns_row, kind),
	ITEM_BYTES_MAX = sizeof(struct head) + sizeof(struct columns_row),
};

_Static_assert((int)ITEM_BYTES_MAX < (int)WRITER_BELT_CHUNK_BYTES, "any item fits into a chunk");

struct chunk {
	uint32_t size;
	uint8_t bytes[WRITER_BELT_CHUNK_BYTES];
};

struct writer_belt {
	struct writer_file *file; // the thread's while given > done
	struct chunk *open;       // the caller's, as all that is not given
	struct columns_row row;   // the thread's: the last one that came
	atomic_bool failed;       // as the thread has seen the file last,
	atomic_uint_least64_t bytes;

	struct worker worker;
	// Under its lock.
	uint64_t given, done;
	uint64_t wanted; // given - done that the caller waits for
	bool waits;      // the caller does
	bool idle;       // the thread waits for chunks
	// Empty ones; the others are on their way. One more than DEFS_MAX for as long as the thread
	// is done with what the caller has just put.
	struct writer_defs spare[DEFS_MAX + 1];
	uint32_t spare_count;
	struct chunk chunks[WRITER_BELT_CHUNKS];
};

// ---- The thread's side -----------------------------------------------------------------------

static inline void take(const uint8_t **at, void *to, size_t size)
{
	memcpy(to, *at, size);
	*at += size;
}

static void take_row(struct columns_row *row, const uint8_t **at)
{
	take(at, row, ROW_HEAD_BYTES);
	take(at, row->kind, row->count);
	take(at, row->address, row->count * sizeof *row->address);
	take(at, row->old_address, row->moved * sizeof *row->old_address);
	take(at, row->size, row->begun * sizeof *row->size);
	take(at, row->stack, row->begun * sizeof *row->stack);
	if (row->free_stacks)
		take(at, row->free_stack, (row->count - row->begun) * sizeof *row->free_stack);
}

static void take_event(struct writer_file *file, const uint8_t **at, uint64_t time_ns)
{
	struct trace_event event;
	struct trace_vm vm;

	take(at, &event, sizeof event);
	if (trace_kind_is_vm(event.kind)) {
		take(at, &vm, sizeof vm);
		event.vm = &vm;
	}
	writer_file_event(file, &event, time_ns);
}

static void take_defs(struct writer_belt *belt, const uint8_t **at)
{
	struct writer_defs defs;

	take(at, &defs, sizeof defs);
	writer_file_defs(belt->file, &defs);
	pthread_mutex_lock(&belt->worker.lock);
	ASSERT(belt->spare_count <= DEFS_MAX);
	belt->spare[belt->spare_count++] = defs;
	pthread_mutex_unlock(&belt->worker.lock);
}

static void take_chunk(struct writer_belt *belt, const struct chunk *chunk)
{
	const uint8_t *at = chunk->bytes, *end = at + chunk->size;

	while (at < end) {
		struct head head;

		take(&at, &head, sizeof head);
		switch ((enum item)head.item) {
		case ITEM_EVENT:
			take_event(belt->file, &at, head.time_ns);
			break;
		case ITEM_ROW:
			take_row(&belt->row, &at);
			writer_file_row(belt->file, &belt->row);
			break;
		case ITEM_ECHO:
			writer_file_echo(belt->file, &belt->row, head.times);
			break;
		case ITEM_DEFS:
			take_defs(belt, &at);
			break;
		case ITEM_CUT:
			writer_file_cut(belt->file, head.time_ns);
			break;
		}
	}
	ASSERT(at == end);
	atomic_store_explicit(&belt->failed, belt->file->failed, memory_order_relaxed);
	atomic_store_explicit(&belt->bytes, belt->file->chain.out.size, memory_order_relaxed);
}

// Waits for a chunk. False: there is none, and will be none.
static bool wait_for_chunk(struct writer_belt *belt)
{
	while (belt->given == belt->done && !belt->worker.over) {
		belt->idle = true;
		pthread_cond_wait(&belt->worker.changed, &belt->worker.lock);
	}
	belt->idle = false;
	return belt->given > belt->done;
}

static void *work(void *context)
{
	struct writer_belt *belt = context;

	pthread_mutex_lock(&belt->worker.lock);
	while (wait_for_chunk(belt)) {
		const struct chunk *chunk = &belt->chunks[belt->done % WRITER_BELT_CHUNKS];

		pthread_mutex_unlock(&belt->worker.lock);
		take_chunk(belt, chunk);
		pthread_mutex_lock(&belt->worker.lock);
		belt->done++;
		if (belt->waits && belt->given - belt->done == belt->wanted)
			pthread_cond_broadcast(&belt->worker.changed);
	}
	pthread_mutex_unlock(&belt->worker.lock);
	return NULL;
}

// ---- The caller's side -----------------------------------------------------------------------

struct writer_belt *writer_belt_new(struct writer_file *file)
{
	struct writer_belt *belt = mem_alloc(1, sizeof *belt);

	belt->file = file;
	belt->open = &belt->chunks[0];
	belt->spare_count = DEFS_MAX;
	atomic_init(&belt->failed, file->failed);
	atomic_init(&belt->bytes, file->chain.out.size);
	worker_start(&belt->worker, work, belt);
	if (belt->worker.thread != NULL)
		return belt;
	worker_end(&belt->worker);
	mem_free(belt);
	return NULL;
}

// Until there are no more than `left` chunks. The lock is ours.
static void wait_until(struct writer_belt *belt, uint64_t left)
{
	belt->wanted = left;
	belt->waits = true;
	if (belt->idle)
		pthread_cond_broadcast(&belt->worker.changed);
	while (belt->given - belt->done > left)
		pthread_cond_wait(&belt->worker.changed, &belt->worker.lock);
	belt->waits = false;
}

// The open chunk is the thread's. `left`: how many there may be after that.
static void hand_over(struct writer_belt *belt, uint64_t left)
{
	pthread_mutex_lock(&belt->worker.lock);
	belt->given += belt->open->size > 0;
	if (belt->given - belt->done > left)
		wait_until(belt, left < WRITER_BELT_CHUNKS / 2 ? left : WRITER_BELT_CHUNKS / 2);
	else if (belt->idle && belt->given - belt->done >= WAKE)
		pthread_cond_broadcast(&belt->worker.changed);
	belt->open = &belt->chunks[belt->given % WRITER_BELT_CHUNKS];
	belt->open->size = 0;
	pthread_mutex_unlock(&belt->worker.lock);
}

void writer_belt_settle(struct writer_belt *belt)
{
	hand_over(belt, 0);
}

void writer_belt_free(struct writer_belt *belt)
{
	if (belt == NULL)
		return;
	writer_belt_settle(belt);
	worker_end(&belt->worker);
	ASSERT(belt->spare_count == DEFS_MAX);
	for (uint32_t i = 0; i < DEFS_MAX; i++)
		writer_defs_fini(&belt->spare[i]);
	mem_free(belt);
}

static inline void put(struct chunk *chunk, const void *from, size_t size)
{
	memcpy(chunk->bytes + chunk->size, from, size);
	chunk->size += (uint32_t)size;
}

// Returns a chunk that has room for the item, behind its head.
static inline struct chunk *begin(struct writer_belt *belt, enum item item, uint64_t time_ns,
				  uint32_t times)
{
	const struct head head = { .item = item, .time_ns = time_ns, .times = times };

	if (unlikely(belt->open->size > WRITER_BELT_CHUNK_BYTES - ITEM_BYTES_MAX))
		hand_over(belt, WRITER_BELT_CHUNKS - 1);
	put(belt->open, &head, sizeof head);
	return belt->open;
}

void writer_belt_event(struct writer_belt *belt, const struct trace_event *event, uint64_t time_ns)
{
	struct chunk *chunk = begin(belt, ITEM_EVENT, time_ns, 0);

	put(chunk, event, sizeof *event);
	if (trace_kind_is_vm(event->kind))
		put(chunk, event->vm, sizeof *event->vm);
}

void writer_belt_row(struct writer_belt *belt, const struct columns_row *row)
{
	struct chunk *chunk = begin(belt, ITEM_ROW, 0, 0);

	put(chunk, row, ROW_HEAD_BYTES);
	put(chunk, row->kind, row->count);
	put(chunk, row->address, row->count * sizeof *row->address);
	put(chunk, row->old_address, row->moved * sizeof *row->old_address);
	put(chunk, row->size, row->begun * sizeof *row->size);
	put(chunk, row->stack, row->begun * sizeof *row->stack);
	if (row->free_stacks)
		put(chunk, row->free_stack, (row->count - row->begun) * sizeof *row->free_stack);
}

void writer_belt_echo(struct writer_belt *belt, uint32_t times)
{
	begin(belt, ITEM_ECHO, 0, times);
}

// Where all spare ones are on their way, one comes back first.
void writer_belt_defs(struct writer_belt *belt, struct writer_defs *defs)
{
	put(begin(belt, ITEM_DEFS, 0, 0), defs, sizeof *defs);
	pthread_mutex_lock(&belt->worker.lock);
	if (belt->spare_count == 0) {
		pthread_mutex_unlock(&belt->worker.lock);
		writer_belt_settle(belt);
		pthread_mutex_lock(&belt->worker.lock);
	}
	*defs = belt->spare[--belt->spare_count];
	pthread_mutex_unlock(&belt->worker.lock);
}

void writer_belt_cut(struct writer_belt *belt, uint64_t last_ns)
{
	begin(belt, ITEM_CUT, last_ns, 0);
}

bool writer_belt_failed(const struct writer_belt *belt)
{
	return atomic_load_explicit(&belt->failed, memory_order_relaxed);
}

uint64_t writer_belt_bytes(const struct writer_belt *belt)
{
	return atomic_load_explicit(&belt->bytes, memory_order_relaxed);
}
