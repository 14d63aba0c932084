#include "view/desk.h"

#include <string.h>
#include <time.h>

enum { LOOK_MS = 100 }; // how often who waits is asked whether they still do

// Somebody in the line; on the stack of its thread.
struct desk_waiter {
	struct desk_waiter *next;
	const struct desk_asker *asker;
	bool superseded;
};

static void begin(struct desk *desk, const struct window_options *window)
{
	desk->window_options = *window;
	opened_stop(&desk->opened, desk_stops, desk);
	pthread_mutex_init(&desk->mutex, NULL);
	pthread_cond_init(&desk->moved, NULL);
}

bool desk_open(struct desk *desk, const char *path, const struct symbols_options *symbols,
	       const struct window_options *window, struct err *err)
{
	*desk = (struct desk){ 0 };
	if (!opened_open(&desk->opened, path, symbols, err))
		return false;
	if (!opened_index(&desk->opened, window, err)) {
		opened_close(&desk->opened);
		return false;
	}
	begin(desk, window);
	return true;
}

bool desk_share(struct desk *desk, const struct desk *from, const struct symbols_options *symbols,
		struct err *err)
{
	*desk = (struct desk){ 0 };
	if (!opened_share(&desk->opened, &from->opened, symbols, err))
		return false;
	begin(desk, &from->window_options);
	return true;
}

void desk_divide(struct desk *desk, uint64_t memory_bytes)
{
	desk->window_options.memory_bytes = memory_bytes;
	window_memory(desk->opened.window, memory_bytes);
}

void desk_close(struct desk *desk)
{
	if (!desk->opened.reader)
		return;
	opened_close(&desk->opened);
	pthread_cond_destroy(&desk->moved);
	pthread_mutex_destroy(&desk->mutex);
	*desk = (struct desk){ 0 };
}

static const char *lane_of(const struct desk_asker *asker)
{
	return asker->lane ? asker->lane : "";
}

static bool is_gone(const struct desk_asker *asker)
{
	return asker->gone && asker->gone(asker->context);
}

// Whoever is at the desk is to stop. What was said first counts.
static void stop_who_is_there(struct desk *desk, enum desk_turn why)
{
	enum desk_turn mine = DESK_MINE;

	atomic_compare_exchange_strong(&desk->turn, &mine, why);
}

// To the end of the line; those of the same lane leave it.
static void line_up(struct desk *desk, struct desk_waiter *self)
{
	struct desk_waiter **link = &desk->first;
	const char *lane = lane_of(self->asker);

	for (; *link; link = &(*link)->next)
		if (*lane && strcmp(lane_of((*link)->asker), lane) == 0)
			(*link)->superseded = true;
	*link = self;
	if (desk->busy && *lane && strcmp(lane_of(&desk->asker), lane) == 0)
		stop_who_is_there(desk, DESK_SUPERSEDED);
	pthread_cond_broadcast(&desk->moved);
}

static void leave_line(struct desk *desk, const struct desk_waiter *self)
{
	struct desk_waiter **link = &desk->first;

	while (*link != self)
		link = &(*link)->next;
	*link = self->next;
}

static void wait_a_while(struct desk *desk)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&desk->moved, &desk->mutex, &until);
}

static enum desk_turn wait_in_line(struct desk *desk, const struct desk_waiter *self)
{
	for (;;) {
		if (desk->stopping)
			return DESK_STOPPED;
		if (self->superseded)
			return DESK_SUPERSEDED;
		if (is_gone(self->asker))
			return DESK_GONE;
		if (!desk->busy && desk->first == self)
			return DESK_MINE;
		wait_a_while(desk);
	}
}

enum desk_turn desk_enter(struct desk *desk, const struct desk_asker *asker)
{
	struct desk_waiter self = { .asker = asker };
	enum desk_turn turn;

	pthread_mutex_lock(&desk->mutex);
	line_up(desk, &self);
	turn = wait_in_line(desk, &self);
	leave_line(desk, &self);
	if (turn == DESK_MINE) {
		desk->busy = true;
		desk->asker = *asker;
		atomic_store(&desk->turn, DESK_MINE);
	}
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
	return turn;
}

enum desk_turn desk_leave(struct desk *desk)
{
	enum desk_turn turn;

	pthread_mutex_lock(&desk->mutex);
	turn = atomic_load(&desk->turn);
	desk->busy = false;
	desk->asker = (struct desk_asker){ 0 };
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
	return turn;
}

bool desk_stops(void *context)
{
	struct desk *desk = context;

	if (atomic_load(&desk->turn) == DESK_MINE && is_gone(&desk->asker))
		stop_who_is_there(desk, DESK_GONE);
	return atomic_load(&desk->turn) != DESK_MINE;
}

void desk_stop(struct desk *desk)
{
	if (!desk->opened.reader)
		return;
	pthread_mutex_lock(&desk->mutex);
	desk->stopping = true;
	stop_who_is_there(desk, DESK_STOPPED);
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
}
