// The follower hears nothing of the terminal's keys, which are for the program: Ctrl-C ends the
// program and with it the trace, and the follower sends the rest. Another Ctrl-C, while only it is
// waited for, ends it, too.
#include "launch/follower_linux.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16, PATIENCE_MS = 500 };

_Noreturn static void become(const char *const *words, const char *path, bool quiet)
{
	const char *argv[WORDS_MAX + 4] = { "tidemark" };
	size_t count = 1;
	sigset_t none;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	// "--" before the path: a trace whose name begins with a dash is no option.
	for (; *words && count < WORDS_MAX; words++)
		argv[count++] = *words;
	argv[count++] = "--";
	argv[count++] = path;
	// Our output is the program's.
	if (dup2(quiet && null >= 0 ? null : STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(EXIT_FAILURE);
	// The follower keeps the three standard descriptors; a copy of the trace's would keep the
	// file claimed after its writer has ended.
	close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	// Below SIGRTMIN are all that the terminal or the kernel sends by itself.
	for (int number = 1; number < SIGRTMIN; number++)
		signal(number, number == SIGTERM ? SIG_DFL : SIG_IGN);
	// An ignored SIGCHLD would take its own children's exit codes from it.
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", (char *const *)argv);
	_exit(EXIT_FAILURE);
}

static int follower_reap(struct follower *follower)
{
	int status = 0;

	ASSERT(follower->pid > 0);
	while (waitpid(follower->pid, &status, 0) < 0 && errno == EINTR)
		;
	follower->pid = 0;
	return status;
}

bool follower_open(struct follower *follower, const char *const *words, const char *path,
		   bool quiet, struct err *err)
{
	ASSERT(follower->pid == 0);
	if (!words)
		return true;
	follower->pid = fork();
	if (follower->pid == 0)
		become(words, path, quiet);
	// By a pidfd its end can be waited for together with signals to us.
	if (follower->pid > 0)
		follower->fd = pidfd_open(follower->pid, 0);
	if (follower->pid > 0 && follower->fd >= 0)
		return true;
	err_errno(err, errno, "cannot start what sends the trace");
	if (follower->pid > 0) { // its end would not be heard of
		kill(follower->pid, SIGKILL);
		follower_reap(follower);
	}
	follower->pid = 0;
	return false;
}

bool follower_wait(struct follower *follower, int signal_fd, void (*tell)(const char *line))
{
	struct signalfd_siginfo info;
	bool told = false;
	int status;

	if (follower->pid == 0)
		return true;
	for (;;) {
		struct pollfd ready[] = {
			{ .fd = signal_fd, .events = POLLIN },
			{ .fd = follower->fd, .events = POLLIN },
		};
		int count = poll(ready, 2, told ? -1 : PATIENCE_MS);

		if (count == 0)
			tell("the recording has ended; sending the rest of it (Ctrl-C leaves that "
			     "to tidemark push)");
		// Said once, after half a second.
		told |= count == 0;
		if (ready[1].revents)
			break;
		// Each signal that we watch asks it to end, except SIGCHLD and SIGCONT.
		while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
			if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGCONT)
				kill(follower->pid, SIGTERM);
	}
	close(follower->fd);
	status = follower_reap(follower);
	if (WIFSIGNALED(status))
		tell("warning: the trace is not sent to its end (try: tidemark push)");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
