// exercise2: the program of Microsoft's memory footprint optimisation, exercise 2, for Linux.
//
// It grows, has spikes, and leaks small blocks; every figure is known to the byte:
//
//     Startup                 175 blocks of 504 bytes and one of 840
//     main                    10 MiB of mapped memory at the beginning, and 10 MiB in the middle
//     Operation1              ten times: ManipulateTemporaryBuffer maps 10 MiB for 100 ms;
//                             then InnerLoopOperation leaks 40 bytes every 31.25 ms, 1,024 times
//                             in all
//
// so 1,200 blocks and 130,000 bytes of heap, none freed; 12 mappings and 125,829,120 bytes. Marks
// (tidemark.h):
//
//     ex2.growth.begin, .end  around the second 10 MiB of main, with nothing else mapped
//     ex2.last4.begin, .end   around the last four of the ten operations
//     ex2.heap10s.begin, .end after steps 352 and 671 of the inner loop: 319 steps
//
// It takes 36 s times EX2_SCALE (1). With EX2_PARTIAL=1 the first buffer is given back in two
// halves, a second apart. Arguments:
//
//     threads   eight threads do what main does to the heap: all counts of the heap times 8
//     fork      after Startup and the first 10 MiB a child is made, which runs the inner loop and
//               maps nothing, beside its parent, which goes on as usual
//
// exercise2_cxx is the same with operator new. There is no stdio and no hidden malloc. Sleeps have
// absolute deadlines, so that no error adds up.
#include "include/tidemark.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#include <new>
#define TAKE(size) operator new(size)
#else
#define TAKE(size) malloc(size)
#endif
#define APART __attribute__((noinline))

enum {
	MIB = 1 << 20,
	BUFFER_BYTES = 10 * MIB,
	PAGE_BYTES = 4096,
	STARTUP_BLOCKS = 175,
	STARTUP_BYTES = 504,
	STARTUP_LAST_BYTES = 840,
	OPERATIONS = 10,
	STEPS = 1024,
	STEP_BYTES = 40,
	STEP_US = 31250,
	SPIKE_US = 100000,
	REST_US = 1000000, // after Startup, around the growth, before the end
	GROWTH_BEFORE = OPERATIONS / 2,
	LAST4_BEFORE = OPERATIONS - 4,
	HEAP10S_AFTER = 352,
	HEAP10S_UNTIL = 671,
	THREADS = 8,
	SETTLE_NS = 2000000, // more than a tick of the recorder's clock
};

static double scale = 1;
static struct timespec now; // the deadline, of main
static void *volatile leaked;
static int workers; // threads that do the heap's part instead of main
static pthread_barrier_t gate;

// Wait until `us` after the deadline before.
static void rest(struct timespec *deadline, double us)
{
	int64_t ns = deadline->tv_nsec + (int64_t)(us * 1000 * scale);

	deadline->tv_sec += ns / 1000000000;
	deadline->tv_nsec = ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, deadline, NULL) != 0)
		;
}

APART static void *commit10(void)
{
	char *at = (char *)mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	for (size_t i = 0; i < BUFFER_BYTES; i += PAGE_BYTES)
		at[i] = 1;
	return at;
}

APART static void release(void *at, size_t bytes)
{
	munmap(at, bytes);
}

APART static void Startup(void)
{
	for (int i = 0; i < STARTUP_BLOCKS; i++)
		leaked = TAKE(STARTUP_BYTES);
	leaked = TAKE(STARTUP_LAST_BYTES);
}

APART static void InnerLoopOperation(void)
{
	leaked = TAKE(STEP_BYTES);
}

APART static void ManipulateTemporaryBuffer(void)
{
	void *buffer = commit10();

	rest(&now, SPIKE_US);
	release(buffer, BUFFER_BYTES);
}

// A mark that is exact for all threads: nobody else is near it.
static void settled_mark(const char *name)
{
	struct timespec settle = { 0, SETTLE_NS };

	nanosleep(&settle, NULL);
	tidemark_mark(name);
	nanosleep(&settle, NULL);
}

// Steps after which somebody sets a mark.
static const char *mark_after(int step)
{
	return step == HEAP10S_AFTER   ? "ex2.heap10s.begin"
	       : step == HEAP10S_UNTIL ? "ex2.heap10s.end"
				       : NULL;
}

static void step_of_main(int step)
{
	const char *mark = mark_after(step);

	rest(&now, STEP_US);
	if (workers == 0) {
		InnerLoopOperation();
		if (mark)
			tidemark_mark(mark);
	} else if (mark) {
		// They have done this step and none of the next.
		pthread_barrier_wait(&gate);
		settled_mark(mark);
		pthread_barrier_wait(&gate);
	}
}

APART static void Operation1(int operation)
{
	int first = STEPS * operation / OPERATIONS + 1;
	int last = STEPS * (operation + 1) / OPERATIONS;

	ManipulateTemporaryBuffer();
	for (int step = first; step <= last; step++)
		step_of_main(step);
}

// The heap's part alone.
static void *work(void *unused)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	Startup();
	pthread_barrier_wait(&gate);
	for (int step = 1; step <= STEPS; step++) {
		rest(&deadline, STEP_US);
		InnerLoopOperation();
		if (mark_after(step)) {
			pthread_barrier_wait(&gate);
			pthread_barrier_wait(&gate);
		}
	}
	return unused;
}

APART static void child(void)
{
	for (int step = 1; step <= STEPS; step++) {
		rest(&now, STEP_US);
		InnerLoopOperation();
	}
	_exit(0);
}

static void grow(void **buffer)
{
	tidemark_phase_begin("ex2.growth");
	rest(&now, REST_US / 2);
	*buffer = commit10();
	rest(&now, REST_US / 2);
	tidemark_phase_end("ex2.growth");
}

int main(int argc, char **argv)
{
	const char *text = getenv("EX2_SCALE");
	const char *form = argc > 1 ? argv[1] : "";
	int partial = getenv("EX2_PARTIAL") != NULL;
	pthread_t threads[THREADS];
	void *first, *second = NULL;
	pid_t pid = 0;

	scale = text ? strtod(text, NULL) : 1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (strcmp(form, "threads") == 0) {
		workers = THREADS;
		pthread_barrier_init(&gate, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		pthread_barrier_wait(&gate);
	} else {
		Startup();
	}
	first = commit10();
	if (strcmp(form, "fork") == 0) {
		pid = fork();
		if (pid == 0)
			child();
	}
	rest(&now, REST_US);
	for (int operation = 0; operation < OPERATIONS; operation++) {
		if (operation == GROWTH_BEFORE)
			grow(&second);
		if (operation == LAST4_BEFORE)
			tidemark_phase_begin("ex2.last4");
		Operation1(operation);
	}
	tidemark_phase_end("ex2.last4");
	if (partial) {
		release(first, BUFFER_BYTES / 2);
		rest(&now, REST_US);
		release((char *)first + BUFFER_BYTES / 2, BUFFER_BYTES / 2);
	} else {
		rest(&now, REST_US);
		release(first, BUFFER_BYTES);
	}
	release(second, BUFFER_BYTES);
	for (int i = 0; i < workers; i++)
		pthread_join(threads[i], NULL);
	if (pid != 0)
		waitpid(pid, NULL, 0);
	return 0;
}
