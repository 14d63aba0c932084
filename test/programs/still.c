// still: allocates at a steady pace until it is told to stop, and says what signals reached it.
//
//     still SECONDS [PAIRS]
//
// Pairs of 7901 bytes, PAIRS (1,000) at a time, then a rest of 1 ms. SIGUSR1, SIGHUP, SIGTERM
// and SIGINT are written to standard output by name; SIGTERM and SIGINT also end it, with exit code
// 5 and 6. Its counters are those of guest.h; `bytes` of thread 1 counts rounds.
#include "guest.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t ends;

static void handler(int number)
{
	const char *name = number == SIGUSR1   ? "USR1\n"
			   : number == SIGHUP  ? "HUP\n"
			   : number == SIGTERM ? "TERM\n"
					       : "INT\n";

	if (write(STDOUT_FILENO, name, strlen(name)) < 0)
		_exit(92);
	if (number == SIGTERM)
		ends = 5;
	if (number == SIGINT)
		ends = 6;
}

int main(int argc, char **argv)
{
	struct guest_counters *counters = guest_counters();
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int pairs = argc > 2 ? atoi(argv[2]) : 1000;
	time_t end = time(NULL) + (time_t)seconds + 1;
	int numbers[] = { SIGUSR1, SIGHUP, SIGTERM, SIGINT };

	for (int i = 0; i < 4; i++)
		if (signal(numbers[i], SIG_IGN) != SIG_IGN) // what we were given stays
			signal(numbers[i], handler);
	guest_say("ready\n");
	while (!ends && time(NULL) < end) {
		for (int i = 0; i < pairs; i++) {
			guest_pair(7901);
			counters->thread[1].allocations++;
			counters->thread[1].frees++;
		}
		usleep(1000);
		counters->thread[1].bytes++;
	}
	return ends;
}
