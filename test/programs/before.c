// Has blocks of every kind that glibc's malloc knows, then waits; frees them when its standard
// input ends, and exits with 7.
//
// As many threads as it is told each do the same: small blocks, freed in patterns that fill the
// tcache, fastbins, and bins of all kinds; large ones; aligned ones of every power of two; some
// with mappings of their own, made larger and smaller. A thread has more than fits one heap of an
// arena. Every second thread ends before the program waits. Told a second number, the main thread
// has as many small blocks besides; and at "sbrk", it moves the break itself in between.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 4000, LARGE = 200, HUGE_BLOCKS = 800, SETS_MAX = 64 };

struct set {
	void *small[SMALL], *large[LARGE], *huge[HUGE_BLOCKS], *aligned[32], *mapped[32], *zeros;
	int ends;
};

// Looks like an empty tcache: of its size, and all zeros.
static __thread void *decoy;

static pthread_barrier_t filled, over;
static struct set sets[SETS_MAX];

static void drop(void **block)
{
	free(*block);
	*block = NULL;
}

static void fill(struct set *set, uint32_t random, int huge)
{
	set->zeros = decoy = calloc(1, 64 * (2 + sizeof(void *)));
	for (int i = 0; i < SMALL; i++) {
		random = random * 1664525 + 1013904223;
		set->small[i] = malloc(random >> 16 & (i % 3 ? 0x7f : 0x7ff));
	}
	for (int i = 0; i < LARGE; i++)
		set->large[i] = calloc(1, 1500 + (size_t)i * 331);
	for (int i = 0; huge && i < HUGE_BLOCKS; i++)
		set->huge[i] = malloc(100000);
	for (int i = 0; i < 21; i++)
		set->aligned[i] = memalign((size_t)16 << i, 100 + 1000 * (size_t)i);
	for (int i = 0; i < 32; i++)
		set->mapped[i] = malloc((160 << 10) + 30000 * (size_t)i);
	for (int i = 0; i < 32; i += 3)
		set->mapped[i] = realloc(set->mapped[i], i % 2 ? 4 << 20 : 140 << 10);
	for (int i = 0; i < SMALL; i++)
		if (i % 7 == 0 || (i > 1000 && i < 1500) || (i > 3000 && i % 2))
			drop(&set->small[i]);
	for (int i = 0; i < LARGE; i++)
		if (i % 3 == 0 || i > 150)
			drop(&set->large[i]);
	for (int i = 0; i < HUGE_BLOCKS; i += 5)
		drop(&set->huge[i]);
	for (int i = 0; i < 32; i += 4)
		drop(&set->mapped[i]);
	for (int i = 1; i < 21; i += 4)
		drop(&set->aligned[i]);
}

static void empty(struct set *set)
{
	drop(&set->zeros);
	for (int i = 0; i < SMALL; i++)
		drop(&set->small[i]);
	for (int i = 0; i < LARGE; i++)
		drop(&set->large[i]);
	for (int i = 0; i < HUGE_BLOCKS; i++)
		drop(&set->huge[i]);
	for (int i = 0; i < 32; i++) {
		drop(&set->aligned[i]);
		drop(&set->mapped[i]);
	}
}

static void *run(void *argument)
{
	struct set *set = argument;

	fill(set, (uint32_t)(uintptr_t)argument, set == &sets[1]);
	pthread_barrier_wait(&filled);
	if (!set->ends)
		pthread_barrier_wait(&over);
	return NULL;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 0, more = argc > 2 ? atol(argv[2]) : 0;
	long stay = threads - threads / 2;
	void **blocks = calloc((size_t)more + 1, sizeof(*blocks));
	pthread_t list[SETS_MAX];
	char byte;

	pthread_barrier_init(&filled, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&over, NULL, (unsigned)stay + 1);
	for (long i = 0; i < threads; i++) {
		sets[i + 1].ends = i % 2;
		pthread_create(&list[i], NULL, run, &sets[i + 1]);
	}
	for (long i = 0; i < more; i++) {
		blocks[i] = malloc(24 + (size_t)i % 100);
		if (argc > 3 && i % 1000 == 0 && sbrk(10000 + i / 1000) == (void *)-1)
			return 1;
	}
	fill(&sets[0], 1, 0);
	pthread_barrier_wait(&filled);
	for (long i = 1; i < threads; i += 2)
		pthread_join(list[i], NULL);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	pthread_barrier_wait(&over);
	for (long i = 0; i < threads; i += 2)
		pthread_join(list[i], NULL);
	for (long i = 0; i <= threads; i++)
		empty(&sets[i]);
	for (long i = 0; i < more; i++)
		free(blocks[i]);
	free(blocks);
	return 7;
}
