// interrupt: a flag that the handler sets, and nothing else, since little is allowed in a handler.
// It is never cleared: after Ctrl-C all long work of this run ends. Where it is
// watched already, the signal ends us after the inner interrupt_leave.
#include "cli/interrupt.h"

#include <signal.h>

// What asks us to end: Ctrl-C, kill, and a terminal that is closed.
static const int asking[] = {
	SIGINT,
	SIGTERM,
#ifdef SIGHUP
	SIGHUP,
#endif
};

enum { ASKING = sizeof asking / sizeof *asking };

static volatile sig_atomic_t came; // the number of the last of them

static void remember(int number)
{
	came = number;
}

// What was done at each before: who started us may have had us ignore it (nohup).
static void (*before[ASKING])(int);

void interrupt_watch(void)
{
	for (int i = 0; i < ASKING; i++) {
		// Set first and looked at after: between two calls of signal a Ctrl-C would be
		// lost, or end us.
		before[i] = signal(asking[i], remember);
		if (before[i] == SIG_IGN)
			signal(asking[i], SIG_IGN);
		if (before[i] == remember)
			before[i] = SIG_DFL;
	}
}

void interrupt_leave(void)
{
	for (int i = 0; i < ASKING; i++)
		signal(asking[i], before[i]);
}

bool interrupt_came(void *)
{
	return came != 0;
}

void interrupt_end(void)
{
	int number = came ? came : SIGINT;

	signal(number, SIG_DFL);
	raise(number);
}
