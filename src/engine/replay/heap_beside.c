// Waking costs some microseconds, a piece is counted in some ten: the thread is woken when half of
// the pieces are full, or all are wanted; and who waits for room when half are free.
#include "engine/replay/heap_beside.h"

#include "base/mem.h"
#include "engine/replay/heap_tally.h"
#include "os/thread.h"
#include "os/worker.h"

enum {
	HALF = HEAP_BESIDE_PIECES / 2,
	AHEAD = 16,      // changes whose sites are fetched
	ALONE = 1 << 12, // events after a join
};

struct heap_beside {
	struct worker worker;
	struct heap *heap;
	struct heap_beside_piece *pieces;
	uint64_t given, done; // pieces
	bool idle;            // the thread waits for more
	bool waits;           // the other one, for room or for all
};

static struct heap_beside_piece *piece_at(const struct heap_beside *beside, uint64_t number)
{
	return &beside->pieces[number % HEAP_BESIDE_PIECES];
}

static void count_piece(struct heap *heap, const struct heap_beside_piece *piece)
{
	for (uint32_t i = 0; i < piece->count; i++) {
		if (i + AHEAD < piece->count)
			heap_expect_site(heap, piece->changes[i + AHEAD].site);
		heap_tally_count(heap, &piece->changes[i], true);
	}
}

// The lock is held. False: nothing more is wanted.
static bool wait_for_work(struct heap_beside *beside)
{
	while (beside->given == beside->done && !beside->worker.over) {
		beside->idle = true;
		pthread_cond_wait(&beside->worker.changed, &beside->worker.lock);
		beside->idle = false;
	}
	return beside->given > beside->done;
}

static void *count(void *context)
{
	struct heap_beside *beside = context;

	pthread_mutex_lock(&beside->worker.lock);
	while (wait_for_work(beside)) {
		pthread_mutex_unlock(&beside->worker.lock);
		count_piece(beside->heap, piece_at(beside, beside->done));
		pthread_mutex_lock(&beside->worker.lock);
		beside->done++;
		if (beside->waits)
			pthread_cond_broadcast(&beside->worker.changed);
	}
	pthread_mutex_unlock(&beside->worker.lock);
	return NULL;
}

// The lock is held. Until no more than so many pieces are to be counted.
static void wait_until(struct heap_beside *beside, uint64_t left)
{
	beside->waits = true;
	while (beside->given - beside->done > left)
		pthread_cond_wait(&beside->worker.changed, &beside->worker.lock);
	beside->waits = false;
}

struct heap_beside_piece *heap_beside_turn(struct heap_beside *beside)
{
	uint64_t full;

	pthread_mutex_lock(&beside->worker.lock);
	full = ++beside->given - beside->done;
	if (beside->idle && full >= HALF)
		pthread_cond_broadcast(&beside->worker.changed);
	if (full == HEAP_BESIDE_PIECES)
		wait_until(beside, HALF);
	pthread_mutex_unlock(&beside->worker.lock);
	piece_at(beside, beside->given)->count = 0;
	return piece_at(beside, beside->given);
}

bool heap_beside_start(struct heap *heap)
{
	struct heap_beside *beside = heap->beside;

	ASSERT(!heap->finished && !heap->estimated);
	if (!beside) {
		beside = heap->beside = mem_alloc(1, sizeof *beside);
		beside->heap = heap;
		beside->pieces = mem_alloc(HEAP_BESIDE_PIECES, sizeof *beside->pieces);
		worker_start(&beside->worker, count, beside);
		heap->piece = beside->pieces;
	}
	heap->apart = beside->worker.thread;
	return heap->apart;
}

void heap_beside_begin(struct heap *heap)
{
	if (heap->apart || heap->estimated || heap->events < heap->apart_from)
		return;
	if (!(heap->beside || thread_processors() > 1) || !heap_beside_start(heap))
		heap->apart_from = UINT64_MAX;
}

void heap_beside_join(struct heap *heap)
{
	struct heap_beside *beside = heap->beside;

	if (!heap->apart)
		return;
	pthread_mutex_lock(&beside->worker.lock);
	beside->given++;
	if (beside->idle)
		pthread_cond_broadcast(&beside->worker.changed);
	wait_until(beside, 0);
	pthread_mutex_unlock(&beside->worker.lock);
	heap->piece = piece_at(beside, beside->given);
	heap->piece->count = 0;
	heap->apart = false;
	heap->apart_from = heap->events + ALONE;
}

void heap_beside_end(struct heap *heap)
{
	heap_beside_join(heap);
	heap->apart_from = UINT64_MAX;
	if (!heap->beside)
		return;
	worker_end(&heap->beside->worker);
	MEM_FREE(heap->beside->pieces, heap->beside);
	heap->beside = NULL;
}
