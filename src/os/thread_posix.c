// Signals go to any thread that does not block them. A worker that took SIGINT would run the
// handler beside a main thread that never wakes: so only the first thread has any.
#include "os/thread.h"

#include "base/mem.h"

#include <pthread.h>
#include <signal.h>

struct thread {
	pthread_t id;
};

// Signals are blocked while it begins, so that it inherits that.
struct thread *thread_start(void *(*work)(void *context), void *context)
{
	struct thread *thread = mem_alloc(1, sizeof *thread);
	sigset_t all, before;
	int number;

	ASSERT(work != NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	number = pthread_create(&thread->id, NULL, work, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (number == 0)
		return thread;
	mem_free(thread);
	return NULL;
}

void thread_join(struct thread *thread)
{
	if (!thread)
		return;
	pthread_join(thread->id, NULL);
	mem_free(thread);
}
