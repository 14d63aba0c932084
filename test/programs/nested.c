// nested: signal handlers that allocate in the midst of allocating, over an allocator that bears it
// (nested_library).
//
//     nested timer         a timer's handler makes pairs of 7611 bytes, 2,000 times, while the
//                          program makes pairs of 7610 without a pause. Prints how many of either.
//     nested depth DEPTH   a block of 7620 grows to 7621 by a realloc, in which a signal comes; its
//                          handler takes a block of 7622 that grows to 7623 by a realloc, in which
//                          a signal comes, and so on: DEPTH handlers within each other. Each frees
//                          its block.
#include "guest.h"

#include <signal.h>
#include <sys/time.h>

enum { HANDLED = 2000, TIMER_US = 20, TIMER_SPREAD = 17 };

extern void (*nested_inside)(void);

static volatile sig_atomic_t handled, left;

// Once more, at the end of each handler: however long that takes, the program goes on between them.
static void begin_timer(void)
{
	struct itimerval once = { { 0, 0 }, { 0, TIMER_US + handled % TIMER_SPREAD } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void on_timer(int number)
{
	(void)number;
	guest_pair(7611);
	if (++handled < HANDLED)
		begin_timer();
}

static void run_timer(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	long pairs = 0;

	guest_check(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	begin_timer();
	for (; handled < HANDLED; pairs++)
		guest_pair(7610);
	guest_say("%d %ld\n", (int)handled, pairs);
}

static void interrupt(void)
{
	if (left > 0)
		raise(SIGUSR1);
}

static void on_signal(int number)
{
	void *volatile block;

	(void)number;
	left--;
	block = malloc(7622);
	block = realloc(block, 7623);
	free(block);
}

static void run_depth(int depth)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
	void *volatile block = malloc(7620);

	guest_check(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
	left = depth;
	nested_inside = interrupt;
	block = realloc(block, 7621);
	nested_inside = NULL;
	free(block);
}

int main(int argc, char **argv)
{
	guest_check(argc > 1, "needs a word");
	if (strcmp(argv[1], "timer") == 0)
		run_timer();
	else
		run_depth(argc > 2 ? atoi(argv[2]) : 1);
	return 0;
}
