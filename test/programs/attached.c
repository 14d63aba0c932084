// Loops that allocate and free, in as many threads as it is told, until its standard input ends.
//
// Before that it has as many blocks of 7901 bytes as it is told, a quarter of which the threads
// free in the loop, one after the other. Each round is a malloc, a realloc, a calloc and two frees,
// of sizes that nobody else has. At the end it says how often its threads went round and how many
// blocks did not hold what they should, and exits with 7. At "signals" the threads are in a signal
// handler for half of the time, most often one that has interrupted malloc; at "bins" each has a
// hundred thousand small free blocks side by side, and one call that joins them takes milliseconds
// (malloc_consolidate); at "full" no address is free for 8 TiB below the libraries, and the main
// thread uses 7 MiB of stack at the end; at "waits" no thread calls malloc, and what is mapped
// are 1 MiB by malloc, 256 MiB that are not used and, at last, 8 MiB that are. Of what is recorded
// in between it must be true that nothing is lost, that each block of these sizes is freed by who
// has it, and that stacks lead to main or to the thread's start.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	SIZE_FIRST = 7911,
	SIZE_GROWN = 7921,
	SIZE_ZEROED = 7931,
	KEPT_BYTES = 7901,
	BIN_BLOCKS = 100000
};

static _Atomic int over;
static _Atomic long rounds;
static _Atomic long wrong;
static void **kept;
static long kept_count, threads_count;
static int bins, full, waits;

static void take_time(int number)
{
	(void)number;
	for (int i = 0; i < 2000; i++)
		__builtin_ia32_pause();
}

static void interrupt_often(void)
{
	const struct itimerval often = { { 0, 200 }, { 0, 200 } };
	struct sigaction action = { .sa_handler = take_time, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

// Small blocks that are freed, and a large one, for which they are joined.
static void fill_bins(void)
{
	void **blocks = malloc(BIN_BLOCKS * sizeof(*blocks));

	for (int i = 0; i < BIN_BLOCKS; i++)
		blocks[i] = malloc(24);
	for (int i = 0; i < BIN_BLOCKS; i++)
		free(blocks[i]);
	*(void *volatile *)blocks = malloc(5000);
	free(blocks[0]);
	free(blocks);
}

// Reserves 8 TiB, as databases do for what they may have one day, and the holes above that.
static void reserve_addresses(void)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *all = mmap(NULL, (size_t)(8ull << 40), PROT_NONE, how, -1, 0), *hole;

	do
		hole = mmap(NULL, 1 << 19, PROT_NONE, how, -1, 0);
	while (hole > all);
	munmap(hole, 1 << 19);
}

static int use_stack(int pages)
{
	volatile char page[4096] = { (char)pages };

	return pages ? use_stack(pages - 1) + page[0] - (char)pages : 0;
}

// A block with a mapping of its own, memory that is never used, and some that is.
static void map_more(void)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	malloc(1 << 20);
	// In huge pages there would be no tables.
	madvise(mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE, how, -1, 0), 256 << 20,
		MADV_NOHUGEPAGE);
	mmap(NULL, 8192, PROT_NONE, how, -1, 0); // or the next would be one with that
	memset(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, how, -1, 0), 1, 8 << 20);
}

static void *go_round(void *argument)
{
	long number = (long)(intptr_t)argument;
	long done = 0;
	long next = number;

	while (waits && !over)
		usleep(10000);
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		char *first, *zeroed;

		if (bins)
			fill_bins();
		first = malloc(SIZE_FIRST);
		zeroed = calloc(1, SIZE_ZEROED);
		first[0] = (char)done;
		first = realloc(first, SIZE_GROWN);
		if (first[0] != (char)done || zeroed[0] || zeroed[SIZE_ZEROED - 1])
			wrong++;
		zeroed[0] = zeroed[SIZE_ZEROED - 1] = 1;
		free(first);
		free(zeroed);
		if (done % 1000 == 999 && next < kept_count / 4) {
			free(kept[next]);
			kept[next] = NULL;
			next += threads_count;
		}
		done++;
	}
	rounds += done;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	sigset_t timer;
	char byte;

	threads_count = argc > 1 ? atol(argv[1]) : 4;
	kept_count = argc > 2 ? atol(argv[2]) : 1000;
	kept = calloc((size_t)kept_count, sizeof(*kept));
	for (long i = 0; i < kept_count; i++)
		kept[i] = malloc(KEPT_BYTES);
	bins = argc > 3 && strcmp(argv[3], "bins") == 0;
	full = argc > 3 && strcmp(argv[3], "full") == 0;
	if (full)
		reserve_addresses();
	waits = argc > 3 && strcmp(argv[3], "waits") == 0;
	if (!full && !waits && !bins && argc > 3)
		interrupt_often();
	for (long i = 0; i < threads_count; i++)
		pthread_create(&threads[i], NULL, go_round, (void *)(intptr_t)i);
	if (waits)
		map_more();
	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &timer, NULL); // it is for the others
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	over = 1;
	for (long i = 0; i < threads_count; i++)
		pthread_join(threads[i], NULL);
	for (long i = 0; i < kept_count; i++)
		free(kept[i]);
	free(kept);
	if (full)
		wrong += use_stack(7 << 8);
	printf("%ld rounds, %ld wrong\n", (long)rounds, (long)wrong);
	return wrong ? 1 : 7;
}
