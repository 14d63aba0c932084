// worker: a thread that works ahead of the one that has it, with the lock that both share.
//
//     worker_start
//       pthread_mutex_lock(&worker.lock), pthread_cond_wait(&worker.changed, …)  on both sides
//     worker_end        says that nothing more is wanted, and waits for the thread's end
//
// The thread looks at `over` whenever it has the lock, and ends where it is set. What the two hand
// each other is the user's, under the same lock.
#pragma once

#include "os/thread.h"

#include <pthread.h>
#include <stdbool.h>

struct worker {
	struct thread *thread; // NULL: there is none to be had, and the caller works itself
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over; // nothing more is wanted; under the lock
};

// Begin `work` beside us; `thread` says whether there is one.
void worker_start(struct worker *worker, void *(*work)(void *context), void *context);

// After worker_start, also where there is no thread.
void worker_end(struct worker *worker);
