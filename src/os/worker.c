// Where no thread can be had, `thread` is NULL and the caller does the work itself, at its own
// pace: the lock and the condition are there all the same, so that one code serves both.
#include "os/worker.h"

// The lock comes before the thread: `work` may take it at once.
void worker_start(struct worker *worker, void *(*work)(void *context), void *context)
{
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	worker->over = false;
	worker->thread = thread_start(work, context);
}

// The lock and the condition end with it, so no other may use them any more.
void worker_end(struct worker *worker)
{
	if (worker->thread) {
		pthread_mutex_lock(&worker->lock);
		worker->over = true;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
		thread_join(worker->thread);
	}
	pthread_mutex_destroy(&worker->lock);
	pthread_cond_destroy(&worker->changed);
}
