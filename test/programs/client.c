// client: everything that tidemark.h offers, with known figures. The first argument says what:
//
// marks    100 times: a block of 7601, the mark "between", a block of 7602; no time passes. Then
//          the phase "work" around ten blocks of 7603.
// handler  a timer's handler sets the mark "tick" while the program allocates 7605 and frees it as
//          fast as it can, until 50 such marks are set. Prints how many marks and blocks.
// names    a thread called "given" by the program through tidemark.h and another called "system"
//          through the kernel, with a block of 7606 and of 7607.
// pools    8 threads share a pool "shared" of 64 places: each takes a place, keeps it and gives it
//          back, 5,000 times, under one lock; now and then one resets the pool instead. Sizes are
//          7610 + the thread's number. Prints allocations, frees, resets. Then a pool "other": ten
//          blocks of 7620, one of them resized in place to 7621, one moved to 7622, one freed that
//          it never had; and it is destroyed.
// fork     a pool "kept" with ten blocks of 7630; a child frees two of them, allocates three of
//          7631 there, and one of 7632 in a pool "mine" of its own.
// pause    blocks a and b of 7640; paused: b freed, c of 7641, a resized to 7642, d of 7643 freed;
//          resumed: e of 7644, c freed.
// others   300 times: the mark "begin", a block of 7650 of another thread, the mark "end"; then 20
//          times with one of a child that ends. The threads wait for each other without the kernel.
// killed   5 times the mark "begin", a block of 7650 of a forked child that kills itself, the mark
//          "end"; and 5 times with one of a program that is started ("victim").
// still    nothing, so that what the calls cost unrecorded can be looked at. Prints whether it is
//          recorded.
#include "guest.h"
#include "include/tidemark.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

static void *volatile sink;

static void take(size_t size)
{
	sink = malloc(size);
}

static void marks(void)
{
	for (int i = 0; i < 100; i++) {
		take(7601);
		tidemark_mark("between");
		take(7602);
	}
	tidemark_phase_begin("work");
	for (int i = 0; i < 10; i++)
		take(7603);
	tidemark_phase_end("work");
}

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
	(void)number;
	tidemark_mark("tick");
	ticks++;
}

static void handler(void)
{
	struct itimerval often = { { 0, 40 }, { 0, 40 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };
	int blocks = 0;

	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &often, NULL);
	while (ticks < 200 || blocks < 20000) {
		take(7605);
		free(sink);
		blocks++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	guest_say("%d %d\n", (int)ticks, blocks);
}

static void *named(void *unused)
{
	tidemark_name_thread("given");
	take(7606);
	return unused;
}

static void *called(void *unused)
{
	prctl(PR_SET_NAME, "system");
	take(7607);
	return unused;
}

static void names(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, named, NULL);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, called, NULL);
	pthread_join(thread, NULL);
}

enum { PLACES = 64, PLACE_BYTES = 8192, THREADS = 8, TURNS = 5000 };

static char places[PLACES][PLACE_BYTES];
static char taken[PLACES];
static unsigned generation; // of the pool: a reset makes it another
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tidemark_pool shared;
static unsigned counts[3];

__attribute__((noinline)) static int take_place(size_t size, unsigned *of)
{
	for (int i = 0; i < PLACES; i++) {
		if (taken[i])
			continue;
		taken[i] = 1;
		tidemark_pool_alloc(shared, places[i], size);
		counts[0]++;
		*of = generation;
		return i;
	}
	abort();
}

static void give_place(int place, unsigned of, int reset)
{
	if (reset) {
		tidemark_pool_reset(shared);
		memset(taken, 0, sizeof(taken));
		counts[2]++;
		generation++;
	} else if (of == generation) {
		tidemark_pool_free(shared, places[place]);
		taken[place] = 0;
		counts[1]++;
	}
}

static void *share(void *argument)
{
	size_t size = 7610 + (uintptr_t)argument;
	unsigned of = 0;

	for (int turn = 0; turn < TURNS; turn++) {
		int place;

		pthread_mutex_lock(&lock);
		place = take_place(size, &of);
		pthread_mutex_unlock(&lock);
		pthread_mutex_lock(&lock);
		give_place(place, of, turn % 1000 == 999);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void pools(void)
{
	pthread_t threads[THREADS];
	tidemark_pool other = tidemark_pool_create("other");

	shared = tidemark_pool_create("shared");
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, share, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	guest_say("%u %u %u\n", counts[0], counts[1], counts[2]);

	for (int i = 0; i < 10; i++)
		tidemark_pool_alloc(other, places[i], 7620);
	tidemark_pool_realloc(other, places[0], places[0], 7621);
	tidemark_pool_realloc(other, places[1], places[11], 7622);
	tidemark_pool_free(other, places[12]);
	tidemark_pool_destroy(other);
}

static void forks(void)
{
	tidemark_pool pool = tidemark_pool_create("kept");
	pid_t child;

	for (int i = 0; i < 10; i++)
		tidemark_pool_alloc(pool, places[i], 7630);
	child = fork();
	if (child == 0) {
		tidemark_pool mine = tidemark_pool_create("mine");

		tidemark_pool_free(pool, places[0]);
		tidemark_pool_free(pool, places[1]);
		for (int i = 10; i < 13; i++)
			tidemark_pool_alloc(pool, places[i], 7631);
		tidemark_pool_alloc(mine, places[20], 7632);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void pauses(void)
{
	void *volatile a = malloc(7640);
	void *volatile b = malloc(7640);
	void *volatile c;

	tidemark_pause();
	free(b);
	c = malloc(7641);
	a = realloc(a, 7642);
	take(7643);
	free(sink);
	tidemark_resume();
	take(7644);
	free(c);
}

enum { HANDOVERS = 300, CHILDREN = 20 };
static int turn; // odd: the other thread's

static void *other(void *unused)
{
	for (int i = 1; i < 2 * HANDOVERS; i += 2) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i)
			sched_yield();
		take(7650);
		__atomic_store_n(&turn, i + 1, __ATOMIC_RELEASE);
	}
	return unused;
}

static void others(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, other, NULL);
	for (int i = 1; i < 2 * HANDOVERS; i += 2) {
		tidemark_mark("begin");
		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == i)
			sched_yield();
		tidemark_mark("end");
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child;

		tidemark_mark("begin");
		child = fork();
		if (child == 0) {
			take(7650);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		tidemark_mark("end");
	}
}

static void victim(void)
{
	take(7650);
	kill(getpid(), SIGKILL);
}

static void killed(void)
{
	for (int i = 0; i < 10; i++) {
		char name[] = "client", part[] = "victim";
		char *const args[] = { name, part, NULL };
		pid_t child;

		tidemark_mark("begin");
		child = i % 2 ? vfork() : fork();
		if (child == 0 && i % 2)
			execv("/proc/self/exe", args);
		else if (child == 0)
			victim();
		waitpid(child, NULL, 0);
		tidemark_mark("end");
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = { { "marks", marks },   { "handler", handler }, { "names", names },
		      { "pools", pools },   { "fork", forks },      { "pause", pauses },
		      { "others", others }, { "killed", killed },   { "victim", victim } };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
			parts[i].run();
	if (argc > 1 && strcmp(argv[1], "still") == 0)
		guest_say("%d\n", tidemark_recorded());
	return 0;
}
