// interrupt: a flag that the handler sets, and nothing else, since little is allowed in a handler.
// It is never cleared: after Ctrl-C all long work of this run ends. Where it is
// watched already, SIGINT ends us after the inner interrupt_leave.
#include "cli/interrupt.h"

#include <signal.h>
#include <stdlib.h>

static volatile sig_atomic_t came;

static void remember(int number)
{
	(void)number;
	came = 1;
}

// What was done at it before: who started us may have had us ignore it.
static void (*before)(int);

void interrupt_watch(void)
{
	before = signal(SIGINT, remember);
	if (before == SIG_IGN)
		signal(SIGINT, SIG_IGN);
	if (before == remember)
		before = SIG_DFL;
}

void interrupt_leave(void)
{
	signal(SIGINT, before);
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
