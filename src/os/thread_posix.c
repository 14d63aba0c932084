// Signals go to any thread that does not block them. A worker that took SIGINT would run the
// handler beside a main thread that never wakes: so only the first thread has any.
#include "os/thread.h"

#include "base/control_group.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

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

// "150000 100000" are one and a half, and so two at once; "max 100000" is no limit.
static uint64_t cores_of(const char *text)
{
	char *end;
	uint64_t given = strtoull(text, &end, 10), period = strtoull(end, NULL, 10);

	return given && period ? (given - 1) / period + 1 : 0;
}

unsigned thread_cores(void)
{
	const struct control_group_form *form = &control_group_forms[CONTROL_GROUP_V2];
	char list[CONTROL_GROUP_BYTES], group[CONTROL_GROUP_BYTES];
	unsigned cores = 1;
	uint64_t limit;
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof ours, &ours) == 0)
		cores = (unsigned)CPU_COUNT(&ours);
	else if (sysconf(_SC_NPROCESSORS_ONLN) > 0)
		cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN); // more than the set has bits for
	control_group_list(0, list);
	control_group_find(form, list, group);
	limit = control_group_lowest(form, group, "cpu.max", cores_of);
	return limit && limit < cores ? (unsigned)limit : cores;
}
