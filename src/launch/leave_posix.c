// A parent that looks at WIFSIGNALED tells a program that was ended by a signal from one that
// returned 128 + number. So we end by the same signal. For example, the program died of SIGSEGV
// (11): we raise 11 with its default action, and the exit code that a shell shows is 139. If the
// signal does not end us (we are the first process of a namespace), 139 is returned.
//
// The program has written its own core file, if any: ours would only overwrite it.
#include "launch/leave.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int leave_as(int status)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t set;
	int number;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	number = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	// A signal's end writes out no buffers.
	fflush(NULL);
	kill(getpid(), number);
	return 128 + number;
}
