// query_queue: an open trace at which one question is answered at a time, and the line in front of
// it.
//
// The engine and the names are for one thread, requests come in many. They wait in the order in
// which they came. A question may belong to a lane of the page, such as that of a window that is
// being dragged: when a newer one of its lane comes, it is superseded: sent away while it waits,
// stopped while it is being answered. A question that nobody waits for any more is stopped as well.
//
//     query_queue_open        a trace of its own
//     query_queue_share       the same trace once more, for questions that take longer
//       query_queue_enter     waits; QUERY_QUEUE_MINE: queue->opened is the caller's
//       query_queue_leave     how it went: whether what was found may be believed
//     query_queue_stop        everybody is sent away or stopped, and whoever comes
//     query_queue_close       nobody is there any more; those that share it first
//
// For example a mouse drags a window: its page asks ten times a second in the lane "drag". One is
// being answered when the next comes: it is stopped, and answered as superseded; of those that wait
// only the newest stays.
#pragma once

#include "report/ask/opened.h"

#include <pthread.h>
#include <stdatomic.h>

struct query_queue_waiter; // private

// Who asks.
struct query_queue_asker {
	const char *lane;            // NULL or "": none
	bool (*gone)(void *context); // the answer is no longer wanted; from any thread. NULL: it is
	void *context;               // borrowed
};

// MINE: it is the caller's turn. All others: it is not, or is no longer.
enum query_queue_turn {
	QUERY_QUEUE_MINE,       // to be left again
	QUERY_QUEUE_SUPERSEDED, // a newer one of its lane has come
	QUERY_QUEUE_GONE,       // its asker does not wait any more
	QUERY_QUEUE_STOPPED
};

struct query_queue {
	struct opened opened; // of whoever is at the queue
	struct window_options window_options;
	pthread_mutex_t mutex; // the rest is private
	pthread_cond_t moved;
	struct query_queue_waiter *first;
	struct query_queue_asker asker;      // who is at it, while busy
	_Atomic(enum query_queue_turn) turn; // QUERY_QUEUE_MINE, or why that one is to stop
	bool busy, stopping;
	struct progress_meter meter; // what the question at it has come to
	uint64_t since_ns;           // when its turn came, by the steady clock
};

// `path` is borrowed; so is what the options name. Builds the index where there is none.
// False: *err says why, and query_queue_close may be called.
bool query_queue_open(struct query_queue *query_queue, const char *path,
		      const struct symbols_options *symbols, const struct window_options *window,
		      struct err *err);
bool query_queue_share(struct query_queue *query_queue, const struct query_queue *from,
		       const struct symbols_options *symbols, struct err *err);
void query_queue_close(struct query_queue *query_queue); // accepts { 0 }

// How much memory a question at it may take, of what the options gave to all.
void query_queue_divide(struct query_queue *query_queue, uint64_t memory_bytes);

// `asker` is borrowed until query_queue_leave.
enum query_queue_turn query_queue_enter(struct query_queue *query_queue,
					const struct query_queue_asker *asker);

// QUERY_QUEUE_MINE: nothing came between. Else the question was stopped, and why: what it found is
// wrong.
enum query_queue_turn query_queue_leave(struct query_queue *query_queue);

// Who is at the queue, or waits, in order. `meter` is NULL of who waits.
// Called with the line held: `each` is quick.
struct query_queue_work {
	const char *lane; // "": none
	const struct progress_meter *meter;
	uint64_t since_ns; // by the steady clock; of who waits 0
};
void query_queue_each(struct query_queue *query_queue,
		      void (*each)(void *context, const struct query_queue_work *work),
		      void *context);

// Whether whoever is at the queue is to stop: a `gone` of theirs.
bool query_queue_stops(void *query_queue);

// For who waits for something else and asks that: until it moves, a tenth of a second at most.
void query_queue_wait(pthread_cond_t *moved, pthread_mutex_t *mutex);

// Sends everybody away who waits, or will come; stops who is there.
void query_queue_stop(struct query_queue *query_queue);
