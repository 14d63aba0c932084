// Preloaded into tidemark itself, never into what it records: a system as a test wants it.
//
// OTHER_SCOPE is the file that is read in place of kernel.yama.ptrace_scope. With OTHER_NAPS, a nap
// of 10 ms between two looks at threads that cannot be stopped passes as a third of a second, by
// the clock: thirty seconds of patience are over after one. With OTHER_ENDS, another process is
// killed, and has ended, as the file of that name is opened in its folder of /proc.
#undef _FILE_OFFSET_BITS // or the header makes `open` another name of open64
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long slept_ms;

static void end_process(int pid)
{
	char path[32], text[256] = "";
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	kill(pid, SIGKILL);
	do {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
		ssize_t got = read(fd, text, sizeof(text) - 1);

		close(fd);
		text[got > 0 ? got : 0] = '\0';
		state = strrchr(text, ')');
		sched_yield();
	} while (state && state[2] != 'Z');
}

static int open_other(const char *path, int flags, int mode)
{
	const char *scope = getenv("OTHER_SCOPE"), *ends = getenv("OTHER_ENDS");
	char name[32];
	int pid;

	if (ends && sscanf(path, "/proc/%d/%31s", &pid, name) == 2 && strcmp(name, ends) == 0 &&
	    pid != getpid())
		end_process(pid);
	if (scope && strcmp(path, "/proc/sys/kernel/yama/ptrace_scope") == 0)
		path = scope;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                    \
	int name(const char *path, int flags, ...)    \
	{                                             \
		va_list list;                         \
		int mode;                             \
                                                      \
		va_start(list, flags);                \
		mode = va_arg(list, int);             \
		va_end(list);                         \
		return open_other(path, flags, mode); \
	}

OPEN(open)
OPEN(open64)

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec wait = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	if (timeout_ms == 10 && getenv("OTHER_NAPS"))
		slept_ms += 333;
	return (int)syscall(SYS_ppoll, fds, count, timeout_ms < 0 ? NULL : &wait, NULL, 0);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int result = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_MONOTONIC)
		time->tv_sec += slept_ms / 1000;
	return result;
}
