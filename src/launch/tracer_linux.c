// For example threads 10, 11 and 12 are stopped, one after the other, when 10 begins to execute
// another program. That ends 11, which is traced: the kernel lets 10 go no further until somebody
// has waited for 11, and the thread that traces, which asks for 12, no further until 10 has. So the
// thread that waits for that one waits for 11.
#include "launch/tracer_linux.h"

#include "base/mem.h"
#include "launch/tracee_linux.h"
#include "os/worker.h"

#include <time.h>

enum { TRACER_PATIENCE_NS = 10000000, TRACER_SECOND_NS = 1000000000 };

struct tracer {
	struct worker worker;
	pid_t pid;
	void (*work)(void *context); // under the lock; NULL: there is nothing to be done
	void *context;
};

// Only the thread that has seized another one may ask ptrace for anything about it: so all work on
// a process is done in this one, and nothing here knows what. `work` stays set while it is done,
// for tracer_do waits until it is not.
static void *tracer_main(void *argument)
{
	struct tracer *tracer = argument;
	struct worker *worker = &tracer->worker;

	pthread_mutex_lock(&worker->lock);
	while (!worker->over) {
		if (!tracer->work) {
			pthread_cond_wait(&worker->changed, &worker->lock);
			continue;
		}
		pthread_mutex_unlock(&worker->lock);
		tracer->work(tracer->context);
		pthread_mutex_lock(&worker->lock);
		tracer->work = NULL;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

struct tracer *tracer_new(pid_t pid)
{
	struct tracer *tracer = mem_alloc(1, sizeof(*tracer));

	ASSERT(pid > 0);
	*tracer = (struct tracer){ .pid = pid };
	worker_start(&tracer->worker, tracer_main, tracer);
	if (tracer->worker.thread)
		return tracer;
	tracer_end(tracer);
	return NULL;
}

// Not for its first thread, whose end is its process's, and others' to wait for.
static void tracer_bury(const struct tracer *tracer)
{
	size_t count;
	pid_t *list = tracee_list(tracer->pid, &count);

	for (size_t i = 0; i < count; i++)
		if (list[i] != tracer->pid)
			tracee_bury(list[i]);
	mem_free(list);
}

// While it is done the caller looks each 10 ms for threads that have ended, or the work could wait
// for ever (see above). The time is the one of the day, since that is what a pthread_cond_t waits
// by.
void tracer_do(struct tracer *tracer, void (*work)(void *context), void *context)
{
	struct worker *worker = &tracer->worker;

	pthread_mutex_lock(&worker->lock);
	ASSERT(!tracer->work && work);
	tracer->work = work;
	tracer->context = context;
	pthread_cond_broadcast(&worker->changed);
	while (tracer->work) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += TRACER_PATIENCE_NS;
		until.tv_sec += until.tv_nsec / TRACER_SECOND_NS;
		until.tv_nsec %= TRACER_SECOND_NS;
		if (pthread_cond_timedwait(&worker->changed, &worker->lock, &until) == 0)
			continue;
		pthread_mutex_unlock(&worker->lock);
		tracer_bury(tracer);
		pthread_mutex_lock(&worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);
}

void tracer_end(struct tracer *tracer)
{
	if (!tracer)
		return;
	ASSERT(!tracer->work);
	worker_end(&tracer->worker);
	mem_free(tracer);
}
