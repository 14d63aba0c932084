// door_queue: what happened at the door and has not been taken yet, in order.
#pragma once

#include "collect/door.h"

#include <pthread.h>

struct door_queue {
	struct tick *tick; // borrowed
	pthread_mutex_t lock;
	struct door_event *first, **last; // under the lock
};

// It may not move from here on.
void door_queue_init(struct door_queue *queue, struct tick *tick);
void door_queue_fini(struct door_queue *queue); // frees what was not taken

// A new one; the caller fills it in and puts it.
struct door_event *door_queue_event(enum door_event_kind kind);

// Nothing is taken until door_queue_release, which puts `event`, or nothing where that is NULL. For
// example, a program is answered, runs, ends, and who waited for that marks it: whoever reads of
// the mark finds the program's arrival in the queue.
void door_queue_hold(struct door_queue *queue);
void door_queue_release(struct door_queue *queue, struct door_event *event);

// At the end of the queue, with the time that it is; the bell is rung. Takes the event.
void door_queue_put(struct door_queue *queue, struct door_event *event);

// Put a warning.
void door_queue_warn(struct door_queue *queue, const struct err *err);

// The first, as door_take promises.
struct door_event *door_queue_take(struct door_queue *queue);
bool door_queue_empty(struct door_queue *queue);
