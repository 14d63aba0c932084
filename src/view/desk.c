#include "view/desk.h"

#include <string.h>

// Somebody in the line; on the stack of its thread.
struct desk_waiter {
	struct desk_waiter *next;
	const char *lane;
	bool superseded;
};

bool desk_open(struct desk *desk, const char *path, const struct symbols_options *symbols,
	       const struct window_options *window, bool indexed, struct err *err)
{
	*desk = (struct desk){ .window_options = *window };
	if (!opened_open(&desk->opened, path, symbols, err))
		return false;
	if (indexed && !opened_index(&desk->opened, window, err)) {
		opened_close(&desk->opened);
		return false;
	}
	pthread_mutex_init(&desk->mutex, NULL);
	pthread_cond_init(&desk->moved, NULL);
	return true;
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

// To the end of the line; those of the same lane leave it.
static void line_up(struct desk *desk, struct desk_waiter *self)
{
	struct desk_waiter **link = &desk->first;

	for (; *link; link = &(*link)->next)
		if (*self->lane && strcmp((*link)->lane, self->lane) == 0)
			(*link)->superseded = true;
	*link = self;
	pthread_cond_broadcast(&desk->moved);
}

static void leave_line(struct desk *desk, const struct desk_waiter *self)
{
	struct desk_waiter **link = &desk->first;

	while (*link != self)
		link = &(*link)->next;
	*link = self->next;
}

enum desk_turn desk_enter(struct desk *desk, const char *lane)
{
	struct desk_waiter self = { .lane = lane ? lane : "" };
	enum desk_turn turn;

	pthread_mutex_lock(&desk->mutex);
	line_up(desk, &self);
	while (!desk->stopping && !self.superseded && (desk->busy || desk->first != &self))
		pthread_cond_wait(&desk->moved, &desk->mutex);
	turn = desk->stopping ? DESK_STOPPED : self.superseded ? DESK_SUPERSEDED : DESK_MINE;
	leave_line(desk, &self);
	if (turn == DESK_MINE)
		desk->busy = true;
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
	return turn;
}

void desk_leave(struct desk *desk)
{
	pthread_mutex_lock(&desk->mutex);
	desk->busy = false;
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
}

void desk_stop(struct desk *desk)
{
	if (!desk->opened.reader)
		return;
	pthread_mutex_lock(&desk->mutex);
	desk->stopping = true;
	pthread_cond_broadcast(&desk->moved);
	pthread_mutex_unlock(&desk->mutex);
}
