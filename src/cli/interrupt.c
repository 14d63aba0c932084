#include "cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t came;

static void remember(int number)
{
	(void)number;
	came = 1;
}

// Who started us may have had us ignore it.
static bool ignored;

void interrupt_watch(void)
{
	ignored = signal(SIGINT, remember) == SIG_IGN;
	if (ignored)
		signal(SIGINT, SIG_IGN);
}

void interrupt_leave(void)
{
	signal(SIGINT, ignored ? SIG_IGN : SIG_DFL);
}

bool interrupt_came(void *context)
{
	(void)context;
	return came;
}

void interrupt_end(void)
{
	signal(SIGINT, SIG_DFL);
	raise(SIGINT);
}
