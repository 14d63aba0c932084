// What a signal handler interrupted, for who attaches: exits with 7 when its standard input ends.
//
// "forever": it lives in a handler that interrupted a call which waits, and never comes back, as
// what postgres forks does. "left": its stack has a word of a handler that came back long ago, in a
// local array that nobody has written to since, but behind that word, where there is no frame of
// the kernel's any more. In both it takes blocks of 7911 bytes and gives them back, a thousand in a
// second.
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int forever;
static uintptr_t restorer; // what a handler returns to

static void go_round(void)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };

	printf("ready\n");
	fflush(stdout);
	while (poll(&end, 1, 1) == 0)
		free(malloc(7911));
	exit(7);
}

static void handle(int number)
{
	(void)number;
	restorer = (uintptr_t)__builtin_return_address(0);
	if (forever)
		go_round();
}

static __attribute__((noinline)) void go_deep(void)
{
	volatile uintptr_t unwritten[2000];
	int found = 0;

	for (int i = 0; i < 2000; i++)
		if (unwritten[i] == restorer) {
			found++;
			for (int j = i + 1; j < 2000 && j < i + 60; j++)
				unwritten[j] = 0x4141;
		}
	if (!found)
		exit(9);
	go_round();
	unwritten[0] = 0;
}

int main(int argc, char **argv)
{
	forever = argc > 1 && strcmp(argv[1], "forever") == 0;
	signal(SIGALRM, handle);
	ualarm(1000, 0);
	pause();
	go_deep();
	return 8;
}
