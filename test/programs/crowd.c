// crowd: many threads.
//
//     crowd HOW
//
// stress      8 threads, 20,000 steps each: take a block of 16 to 7800 bytes, put it into a table
//             that all share, free what was there: most frees are another thread's
// together    1,000 threads at once, 100 pairs of 7801 bytes each, and one block of 7802 kept
// in_turn     20,000 threads one after the other, each keeps and frees one block of 7803
// tight KIB  a thread of 1,000 pairs of 7804 bytes, in a process that may map so much more, which
//             leaves the recorder no lane for it; prints besides by how many KiB it has grown
// busy N      N threads at once, 20,000 pairs each; prints the peak of its own memory, in KiB
// Prints the number of allocations of its own.
#include "guest.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum { SLOTS = 1024, STEPS = 20000, TOGETHER = 1000, BUSY_SIZES = 16 };

static _Atomic(void *) slots[SLOTS];
static pthread_barrier_t all_here;

static void *stress(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument * 2654435761u;

	for (int i = 0; i < STEPS; i++) {
		void *ptr;

		seed = seed * 1664525u + 1013904223u;
		ptr = malloc(16 + (seed >> 8) % 7784);
		guest_check(ptr != NULL, "malloc");
		*(volatile uint32_t *)ptr = seed;
		free(atomic_exchange(&slots[(seed >> 12) % SLOTS], ptr));
	}
	return NULL;
}

static void *together(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&all_here);
	for (int i = 0; i < 100; i++)
		guest_pair(7801);
	guest_keep(7802);
	pthread_barrier_wait(&all_here);
	return NULL;
}

static void *busy(void *argument)
{
	pthread_barrier_wait(&all_here);
	for (int i = 0; i < STEPS; i++)
		guest_pair(16 * (size_t)(1 + i % BUSY_SIZES));
	pthread_barrier_wait(&all_here);
	return argument;
}

static void *in_turn(void *argument)
{
	(void)argument;
	guest_pair(7803);
	return NULL;
}

static void *tight(void *argument)
{
	for (int i = 0; i < 1000; i++)
		guest_pair(7804);
	return argument;
}

static long mapped_kib(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	guest_check(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "statm");
	close(fd);
	return atol(text) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void limit(long more_kib)
{
	rlim_t bytes = (rlim_t)(mapped_kib() + more_kib) * 1024;
	const struct rlimit limits = { bytes, bytes };

	guest_check(setrlimit(RLIMIT_AS, &limits) == 0, "setrlimit");
}

static void start(pthread_t *threads, int count, void *(*run)(void *))
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (int i = 0; i < count; i++)
		guest_check(pthread_create(&threads[i], &attributes, run,
					   (void *)(uintptr_t)(i + 1)) == 0,
			    "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "stress";
	static pthread_t threads[TOGETHER];

	if (strcmp(how, "stress") == 0) {
		start(threads, 8, stress);
		for (int i = 0; i < SLOTS; i++)
			free(slots[i]);
		guest_say("%d\n", 8 * STEPS);
	} else if (strcmp(how, "together") == 0) {
		pthread_barrier_init(&all_here, NULL, TOGETHER);
		start(threads, TOGETHER, together);
		guest_say("%d\n", TOGETHER * 101);
	} else if (strcmp(how, "busy") == 0) {
		int count = argc > 2 ? atoi(argv[2]) : 1;

		guest_check(count > 0 && count <= TOGETHER, "count");
		pthread_barrier_init(&all_here, NULL, (unsigned)count);
		start(threads, count, busy);
		guest_say("%ld\n", guest_peak_kib());
	} else if (strcmp(how, "tight") == 0) {
		long before = mapped_kib();

		limit(argc > 2 ? atol(argv[2]) : 1024);
		start(threads, 1, tight);
		guest_say("%d %ld\n", 1000, mapped_kib() - before);
	} else {
		for (int i = 0; i < 20000; i++)
			start(threads, 1, in_turn);
		guest_say("%d\n", 20000);
	}
	return 0;
}
