#include "os/quit.h"

#include "base/mem.h"

#include <signal.h>
#include <stddef.h>

static sigset_t signals;

// Blocked in all threads, to be waited for in one.
void quit_watch(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

void quit_wait(void)
{
	int number;

	ASSERT(sigismember(&signals, SIGINT) == 1); // quit_watch was called
	while (sigwait(&signals, &number) != 0)
		;
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}
