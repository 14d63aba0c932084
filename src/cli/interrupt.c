#include "cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t came;

static void remember(int number)
{
	(void)number;
	came = 1;
}

void interrupt_watch(void)
{
	signal(SIGINT, remember);
}

void interrupt_leave(void)
{
	signal(SIGINT, SIG_DFL);
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
