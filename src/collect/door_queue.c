// A list with a lock: the door's thread puts, the collector takes. `last` is where the next one's
// address goes, the list's beginning if it is empty, and so there is no case of its own for that.
#include "collect/door_queue.h"

#include "base/mem.h"
#include "collect/peer.h"

#include <string.h>

void door_queue_init(struct door_queue *queue, struct tick *tick)
{
	queue->tick = tick;
	queue->first = NULL;
	queue->last = &queue->first;
	pthread_mutex_init(&queue->lock, NULL);
}

void door_queue_fini(struct door_queue *queue)
{
	struct door_event *event;

	while ((event = door_queue_take(queue)) != NULL) {
		door_arrival_free(event->arrival);
		spares_pool_free(event->pool);
		mem_free(event);
	}
	pthread_mutex_destroy(&queue->lock);
}

struct door_event *door_queue_event(enum door_event_kind kind)
{
	struct door_event *event = mem_alloc(1, sizeof *event);

	event->kind = kind;
	return event;
}

void door_queue_hold(struct door_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
}

// The time is set here, under the lock, so that times rise along the queue.
void door_queue_release(struct door_queue *queue, struct door_event *event)
{
	if (event != NULL) {
		ASSERT(event->next == NULL);
		event->time_ns = tick_now(queue->tick);
		*queue->last = event;
		queue->last = &event->next;
	}
	pthread_mutex_unlock(&queue->lock);
	if (event != NULL)
		tick_ring(queue->tick);
}

void door_queue_put(struct door_queue *queue, struct door_event *event)
{
	door_queue_hold(queue);
	door_queue_release(queue, event);
}

void door_queue_warn(struct door_queue *queue, const struct err *err)
{
	struct door_event *event = door_queue_event(DOOR_WARNING);

	memcpy(event->message.text, err->text, sizeof event->message.text - 1);
	door_queue_put(queue, event);
}

struct door_event *door_queue_take(struct door_queue *queue)
{
	struct door_event *event;

	pthread_mutex_lock(&queue->lock);
	event = queue->first;
	if (event != NULL) {
		queue->first = event->next;
		if (queue->first == NULL)
			queue->last = &queue->first;
		event->next = NULL;
	}
	pthread_mutex_unlock(&queue->lock);
	return event;
}

bool door_queue_empty(struct door_queue *queue)
{
	bool empty;

	pthread_mutex_lock(&queue->lock);
	empty = queue->first == NULL;
	pthread_mutex_unlock(&queue->lock);
	return empty;
}

void door_arrival_free(struct door_arrival *arrival)
{
	if (arrival == NULL)
		return;
	share_close(&arrival->share);
	peer_close(arrival->pidfd);
	MEM_FREE(arrival->exe, arrival->args, arrival);
}
