// What os/thread.h promises of processors.
#include "os/thread.h"
#include "test/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(thread_cores_are_those_that_we_may_run_on)
{
	cpu_set_t before, one;
	unsigned cores = thread_cores();
	size_t first = 0;

	CHECK_EQ(0, sched_getaffinity(0, sizeof before, &before));
	CHECK(cores >= 1 && cores <= (unsigned)CPU_COUNT(&before));
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_EQ(0, sched_setaffinity(0, sizeof one, &one));
	CHECK_EQ(1, thread_cores());
	CHECK_EQ(0, sched_setaffinity(0, sizeof before, &before));
	CHECK_EQ(cores, thread_cores());
}

enum { NOT_HERE = 77 };

// A tree of files at the place of the kernel's, in a namespace of mounts of our own: the group that
// we are in has no limit, and the one around all has one of a processor and a half.
static void find_limit(const char *limit, unsigned cores)
{
	char command[512];

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) != 0)
		_exit(NOT_HERE);
	snprintf(command, sizeof command, "echo %s > /sys/fs/cgroup/cpu.max", limit);
	_exit(system(command) != 0 ? NOT_HERE : thread_cores() != cores);
}

static int found(const char *limit, unsigned cores)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		find_limit(limit, cores);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(thread_cores_are_no_more_than_the_control_group_gives)
{
	unsigned cores = thread_cores();
	int half = found("50000 100000", 1), more = found("150000 100000", cores < 2 ? cores : 2),
	    none = found("max 100000", cores);

	if (half == NOT_HERE)
		SKIP("no namespace of mounts");
	CHECK_EQ(0, half);
	CHECK_EQ(0, more);
	CHECK_EQ(0, none);
}
