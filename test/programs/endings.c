// endings: ends in every way a program can end, and loses no event of any thread.
//
//     endings HOW     kill | return | exit | _exit | abort | segv | quick_exit | threads
//
// Two threads allocate and free 7001 and 7002 bytes 5,000 times each and keep 100 blocks each;
// then the program ends. `kill` and `threads` never stop allocating: `kill` waits for the SIGKILL
// of the test, `threads` calls exit while the other thread allocates. The counters are of calls
// that returned.
#include "guest.h"

#include <pthread.h>
#include <signal.h>

enum { PAIRS = 5000, KEPT = 100 };

static struct guest_counters *counters;
static int for_ever;

static void *work(void *argument)
{
	long number = (long)argument;
	size_t size = 7000 + (size_t)number;

	for (int i = 0; i < PAIRS || for_ever; i++) {
		void *ptr = malloc(size);

		counters->thread[number].allocations++;
		counters->thread[number].bytes += size;
		if (i < KEPT)
			continue;
		free(ptr);
		counters->thread[number].frees++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	pthread_t thread;

	counters = guest_counters();
	for_ever = strcmp(how, "kill") == 0 || strcmp(how, "threads") == 0;
	guest_check(pthread_create(&thread, NULL, work, (void *)1) == 0, "pthread_create");
	if (strcmp(how, "threads") == 0) {
		while (counters->thread[1].allocations < PAIRS)
			usleep(100);
		exit(0);
	}
	work((void *)2);
	pthread_join(thread, NULL);
	if (strcmp(how, "exit") == 0)
		exit(7);
	if (strcmp(how, "_exit") == 0)
		_exit(8);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(9);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "segv") == 0)
		*(volatile int *)8 = 1;
	return 0;
}
