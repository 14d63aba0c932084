// crowd: threads that allocate at once.
//
//     crowd private THREADS PAIRS    each frees what it allocated
//     crowd handover THREADS PAIRS   in pairs: one allocates, the other frees
#include "descend.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CROWD_MAX = 64, BELT_COUNT = 1024 };

// Blocks on their way from one thread to another.
struct belt {
	_Alignas(64) _Atomic uint64_t put;
	_Alignas(64) _Atomic uint64_t taken;
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

	for (uint64_t i = 0; i < (uint64_t)pairs; i++) {
		while (i - atomic_load_explicit(&belt->taken, memory_order_acquire) >= BELT_COUNT)
			sched_yield();
		belt->block[i % BELT_COUNT] = malloc(16 + (i & 31) * 16);
		atomic_store_explicit(&belt->put, i + 1, memory_order_release);
	}
}

static void crowd_take(void *context)
{
	struct belt *belt = context;

	for (uint64_t i = 0; i < (uint64_t)pairs; i++) {
		while (atomic_load_explicit(&belt->put, memory_order_acquire) <= i)
			sched_yield();
		free(belt->block[i % BELT_COUNT]);
		atomic_store_explicit(&belt->taken, i + 1, memory_order_release);
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
		members[i].belt = &belts[i / 2];
		members[i].work = !handover ? crowd_private : i % 2 ? crowd_take : crowd_give;
		if (pthread_create(&members[i].thread, NULL, crowd_run, &members[i]) != 0)
			return 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(members[i].thread, NULL);
	return 0;
}
