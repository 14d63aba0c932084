// crowd: threads that allocate at once.
//
//     crowd private THREADS PAIRS    each frees what it allocated
//     crowd handover THREADS PAIRS   in pairs: one allocates, the other frees
#include "descend.h"

#include <pthread.h>
#include <semaphore.h>

enum { CROWD_MAX = 64, BELT_COUNT = 1024, BELT_PARTS = 4, PART_COUNT = BELT_COUNT / BELT_PARTS };

// Blocks on their way from one thread to another, a part of the belt at a time. Who has to wait
// sleeps: what a thread spends on asking again would be all that is measured.
struct belt {
	sem_t full, empty; // parts
	void *block[BELT_COUNT];
};

static struct belt belts[CROWD_MAX];
static long pairs;

static void crowd_private(void *context)
{
	void *kept[16] = { 0 };

	(void)context;
	for (long i = 0; i < pairs; i++) {
		free(kept[i & 15]);
		kept[i & 15] = malloc(16 + (size_t)(i & 31) * 16);
	}
	for (int i = 0; i < 16; i++)
		free(kept[i]);
}

static void crowd_give(void *context)
{
	struct belt *belt = context;

	for (long i = 0; i < pairs; i++) {
		if (i % PART_COUNT == 0)
			sem_wait(&belt->empty);
		belt->block[i % BELT_COUNT] = malloc(16 + (size_t)(i & 31) * 16);
		if ((i + 1) % PART_COUNT == 0 || i + 1 == pairs)
			sem_post(&belt->full);
	}
}

static void crowd_take(void *context)
{
	struct belt *belt = context;

	for (long i = 0; i < pairs; i++) {
		if (i % PART_COUNT == 0)
			sem_wait(&belt->full);
		free(belt->block[i % BELT_COUNT]);
		if ((i + 1) % PART_COUNT == 0)
			sem_post(&belt->empty);
	}
}

struct member {
	pthread_t thread;
	descend_work *work;
	struct belt *belt;
};

static void *crowd_run(void *context)
{
	struct member *member = context;

	descend_go(10, 0x3af5c1e68b7u, member->work, member->belt);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct member members[CROWD_MAX];
	int handover = argc > 1 && strcmp(argv[1], "handover") == 0;
	int threads = (int)descend_number(argc, argv, 2, 2);

	pairs = descend_number(argc, argv, 3, 1000000);
	if (threads < 1 || threads > CROWD_MAX || (handover && threads % 2 != 0))
		return 2;
	for (int i = 0; i < threads; i++) {
		sem_init(&belts[i].full, 0, 0);
		sem_init(&belts[i].empty, 0, BELT_PARTS);
	}
	for (int i = 0; i < threads; i++) {
		members[i].belt = &belts[i / 2];
		members[i].work = !handover ? crowd_private : i % 2 ? crowd_take : crowd_give;
		if (pthread_create(&members[i].thread, NULL, crowd_run, &members[i]) != 0)
			return 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(members[i].thread, NULL);
	return 0;
}
