// Signals go to any thread that does not block them. A worker that took SIGINT would run the
// handler beside a main thread that never wakes: so only the first thread has any.
#include "os/thread.h"

#include "base/mem.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// The beginning of a small file, as text. False: there is none.
static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

// What a group gives: "150000 100000" are one and a half, and so two at once; "max 100000" is no
// limit.
static unsigned group_cores(const char *group, unsigned cores)
{
	char path[512], text[64], *end;
	unsigned long long given, period;

	if ((size_t)snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group) >= sizeof path ||
	    !read_text(path, text, sizeof text))
		return cores;
	given = strtoull(text, &end, 10);
	period = strtoull(end, NULL, 10);
	if (given == 0 || period == 0 || given / period >= cores)
		return cores;
	return (unsigned)((given + period - 1) / period);
}

// The group's own limit, and those of the groups around it: of "/a/b", "/a" and "". In a namespace
// of groups the outermost one is at the mount itself.
unsigned thread_cores(void)
{
	char text[4096], *group, *slash;
	unsigned cores = 1;
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof ours, &ours) == 0)
		cores = (unsigned)CPU_COUNT(&ours);
	else if (sysconf(_SC_NPROCESSORS_ONLN) > 0)
		cores = (unsigned)sysconf(_SC_NPROCESSORS_ONLN); // more than the set has bits for
	if (!read_text("/proc/self/cgroup", text, sizeof text) ||
	    (group = strstr(text, "0::/")) == NULL)
		return cores;
	group += strlen("0::");
	group[strcspn(group, "\n")] = '\0';
	do {
		cores = group_cores(group, cores);
		slash = strrchr(group, '/');
		if (slash != NULL)
			*slash = '\0';
	} while (slash != NULL);
	return cores;
}
