// Who waits is a node on its own thread's stack, in a list. For example, while one question is
// being answered, with `a` waiting and `b` of the lane "drag":
//
//     c of "drag" comes    b is superseded and leaves the line: a, c
//     d of "drag" comes    c leaves: a, d
//     the first ends       a is at the queue, unless its browser has gone, which is looked for ten
//                          times a second
//
// A question that is being answered is stopped in the same way, at the reader's or the index's
// next block. What it had not finished is not believed.
#include "view/query_queue.h"

#include "base/mem.h"
#include "os/now.h"

#include <string.h>
#include <time.h>

enum { POLL_MS = 100 }; // how often who waits is asked whether they still do

// Somebody in the line; on the stack of its thread.
struct query_queue_waiter {
	struct query_queue_waiter *next;
	const struct query_queue_asker *asker;
	bool superseded;
};

// Long work asks query_queue_stops from now on.
static void begin(struct query_queue *query_queue, const struct window_options *window)
{
	query_queue->window_options = *window;
	opened_stop(&query_queue->opened, query_queue_stops, query_queue);
	pthread_mutex_init(&query_queue->mutex, NULL);
	pthread_cond_init(&query_queue->moved, NULL);
}

bool query_queue_open(struct query_queue *query_queue, const char *path,
		      const struct symbols_options *symbols, const struct window_options *window,
		      struct err *err)
{
	*query_queue = (struct query_queue){ 0 };
	if (!opened_open(&query_queue->opened, path, symbols, err))
		return false;
	if (!opened_index(&query_queue->opened, window, err)) {
		opened_close(&query_queue->opened);
		return false;
	}
	begin(query_queue, window);
	return true;
}

bool query_queue_share(struct query_queue *query_queue, const struct query_queue *from,
		       const struct symbols_options *symbols, struct err *err)
{
	*query_queue = (struct query_queue){ 0 };
	if (!opened_share(&query_queue->opened, &from->opened, symbols, err))
		return false;
	begin(query_queue, &from->window_options);
	return true;
}

void query_queue_divide(struct query_queue *query_queue, uint64_t memory_bytes)
{
	query_queue->window_options.memory_bytes = memory_bytes;
	window_memory(query_queue->opened.window, memory_bytes);
}

void query_queue_close(struct query_queue *query_queue)
{
	if (!query_queue->opened.reader)
		return;
	opened_close(&query_queue->opened);
	pthread_cond_destroy(&query_queue->moved);
	pthread_mutex_destroy(&query_queue->mutex);
	*query_queue = (struct query_queue){ 0 };
}

static const char *lane_of(const struct query_queue_asker *asker)
{
	return asker->lane ? asker->lane : "";
}

// A browser that has closed its connection, as the server sees it.
static bool is_gone(const struct query_queue_asker *asker)
{
	return asker->gone && asker->gone(asker->context);
}

// All who wait at the queue are to stop. What was said first counts.
static void stop_who_is_there(struct query_queue *query_queue, enum query_queue_turn why)
{
	enum query_queue_turn mine = QUERY_QUEUE_MINE;

	ASSERT(why != QUERY_QUEUE_MINE);
	atomic_compare_exchange_strong(&query_queue->turn, &mine, why);
}

// To the end of the line; those of the same lane leave it.
// A question of the same lane that is being answered is stopped, too.
static void line_up(struct query_queue *query_queue, struct query_queue_waiter *self)
{
	struct query_queue_waiter **link = &query_queue->first;
	const char *lane = lane_of(self->asker);

	for (; *link; link = &(*link)->next)
		if (*lane && strcmp(lane_of((*link)->asker), lane) == 0)
			(*link)->superseded = true;
	ASSERT(!self->next);
	*link = self;
	if (query_queue->busy && *lane && strcmp(lane_of(&query_queue->asker), lane) == 0)
		stop_who_is_there(query_queue, QUERY_QUEUE_SUPERSEDED);
	pthread_cond_broadcast(&query_queue->moved);
}

static void leave_line(struct query_queue *query_queue, const struct query_queue_waiter *self)
{
	struct query_queue_waiter **link = &query_queue->first;

	while (*link != self) {
		ASSERT(*link); // it is in the line
		link = &(*link)->next;
	}
	*link = self->next;
}

// That a browser has gone is told by no signal.
void query_queue_wait(pthread_cond_t *moved, pthread_mutex_t *mutex)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(moved, mutex, &until);
}

// With the mutex held, which waiting gives up.
static enum query_queue_turn wait_in_line(struct query_queue *query_queue,
					  const struct query_queue_waiter *self)
{
	for (;;) {
		if (query_queue->stopping)
			return QUERY_QUEUE_STOPPED;
		if (self->superseded)
			return QUERY_QUEUE_SUPERSEDED;
		if (is_gone(self->asker))
			return QUERY_QUEUE_GONE;
		if (!query_queue->busy && query_queue->first == self)
			return QUERY_QUEUE_MINE;
		query_queue_wait(&query_queue->moved, &query_queue->mutex);
	}
}

// The node is on this function's stack, so it leaves the line whatever comes of it. What is said of
// progress from here to query_queue_leave goes to the queue's meter.
enum query_queue_turn query_queue_enter(struct query_queue *query_queue,
					const struct query_queue_asker *asker)
{
	struct query_queue_waiter self = { .asker = asker };
	enum query_queue_turn turn;

	pthread_mutex_lock(&query_queue->mutex);
	line_up(query_queue, &self);
	turn = wait_in_line(query_queue, &self);
	leave_line(query_queue, &self);
	if (turn == QUERY_QUEUE_MINE) {
		ASSERT(!query_queue->busy && !query_queue->stopping);
		query_queue->busy = true;
		query_queue->asker = *asker;
		query_queue->since_ns = now_steady_ns();
		progress_listen(&query_queue->meter);
		atomic_store(&query_queue->turn, QUERY_QUEUE_MINE);
	}
	pthread_cond_broadcast(&query_queue->moved);
	pthread_mutex_unlock(&query_queue->mutex);
	return turn;
}

enum query_queue_turn query_queue_leave(struct query_queue *query_queue)
{
	enum query_queue_turn turn;

	ASSERT(query_queue->busy);
	pthread_mutex_lock(&query_queue->mutex);
	progress_listen(NULL);
	// Whether it was told to stop in between: an answer that was found in spite of that may be
	// of half a trace.
	turn = atomic_load(&query_queue->turn);
	query_queue->busy = false;
	query_queue->asker = (struct query_queue_asker){ 0 };
	pthread_cond_broadcast(&query_queue->moved);
	pthread_mutex_unlock(&query_queue->mutex);
	return turn;
}

void query_queue_each(struct query_queue *query_queue,
		      void (*each)(void *context, const struct query_queue_work *work),
		      void *context)
{
	if (!query_queue->opened.reader)
		return;
	pthread_mutex_lock(&query_queue->mutex);
	if (query_queue->busy)
		each(context,
		     &(struct query_queue_work){ lane_of(&query_queue->asker), &query_queue->meter,
						 query_queue->since_ns });
	for (const struct query_queue_waiter *one = query_queue->first; one; one = one->next)
		each(context, &(struct query_queue_work){ .lane = lane_of(one->asker) });
	pthread_mutex_unlock(&query_queue->mutex);
}

bool query_queue_stops(void *context)
{
	struct query_queue *query_queue = context;

	// Asked by long work every few blocks, from the thread that does it.
	if (atomic_load(&query_queue->turn) == QUERY_QUEUE_MINE && is_gone(&query_queue->asker))
		stop_who_is_there(query_queue, QUERY_QUEUE_GONE);
	return atomic_load(&query_queue->turn) != QUERY_QUEUE_MINE;
}

void query_queue_stop(struct query_queue *query_queue)
{
	if (!query_queue->opened.reader)
		return;
	pthread_mutex_lock(&query_queue->mutex);
	query_queue->stopping = true;
	stop_who_is_there(query_queue, QUERY_QUEUE_STOPPED);
	pthread_cond_broadcast(&query_queue->moved);
	pthread_mutex_unlock(&query_queue->mutex);
}
