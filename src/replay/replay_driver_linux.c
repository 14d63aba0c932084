// The driver of `tidemark replay`: makes the recorded calls under whatever allocator is preloaded.
//
// It is a program of its own, so that nothing else allocates beside what is replayed. Calls are
// made in the order of the trace: one thread has the turn, takes records as long as they are its
// own, and then hands the turn to the thread of the next one. It spins a little before it sleeps,
// since the turn mostly comes back soon.
#include "replay/replay_ring_linux.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 2000, STACK_BYTES = 256 << 10, TOUCHED = 0x5a, SLOTS_AHEAD = 16, SLOW_NS = 2000 };

// All of it in one place, and none of it from malloc: what the allocator is asked for is the
// trace's alone.
static struct {
	struct replay_ring *ring;
	struct replay_ring_slot *slots;
	int status; // /proc/self/status
	// The thread that has the turn reads on here.
	const struct replay_ring_record *at, *end;
	unsigned chunk;
	uint64_t paused_ns, begin_ns, calls;
	uint64_t look_ns;  // what it costs to time a call
	bool knows_usable; // the allocator says what it has given
	long begin_minor, begin_major;
	_Atomic uint32_t turn[REPLAY_RING_THREADS]; // 1: it is this thread's
	bool started[REPLAY_RING_THREADS];
	bool ended[REPLAY_RING_THREADS]; // and not joined yet: its stack is still in use
	pthread_t threads[REPLAY_RING_THREADS];
	void *stacks[REPLAY_RING_THREADS];
} driver;

// perror and _exit: nothing that would call the allocator under test more than it must.
static void die(const char *what)
{
	perror(what);
	_exit(3);
}

static uint64_t now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// ---- measuring ----

// Resident memory that is private, in bytes: the kernel's RssAnon, which it gives in KiB. Shared
// memory, ours, is not in it. Read by pread into the stack, as the allocator is not to be asked.
static uint64_t read_private(void)
{
	char text[4096], *at;
	ssize_t got = pread(driver.status, text, sizeof text - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	at = strstr(text, "RssAnon:");
	return at ? strtoull(at + 8, NULL, 10) * 1024 : 0;
}

// What the sample itself costs is added up and taken off the processor's time.
static void take_sample(uint32_t index)
{
	uint64_t began_ns = now(CLOCK_PROCESS_CPUTIME_ID);
	struct replay_ring_sample *sample = &driver.ring->samples[index];

	if (index >= REPLAY_RING_SAMPLES)
		return;
	sample->private_bytes = read_private();
	sample->cpu_ns = began_ns - driver.begin_ns - driver.paused_ns;
	driver.paused_ns += now(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
}

// By the binary logarithm: 16 to 31 bytes are class 4.
static struct replay_ring_class *class_of(uint64_t size)
{
	unsigned log = size ? 63 - (unsigned)__builtin_clzll(size) : 0;

	return &driver.ring->classes[log < REPLAY_RING_CLASSES ? log : REPLAY_RING_CLASSES - 1];
}

// How often this thread has given the processor away.
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

// A call that is timed.
struct look {
	long switches;
	uint64_t began_ns;
};

// What timing costs is taken off the processor's time, which is that of the calls.
static struct look begin_look(void)
{
	struct look look = { .switches = switches() };

	driver.paused_ns += driver.look_ns;
	look.began_ns = now(CLOCK_MONOTONIC);
	return look;
}

// Less what two looks at the clock cost, measured at the start. False: while the call went on
// others had the processor, so what the clock says is no time of the allocator's. A call that took
// little was not interrupted.
static bool end_look(const struct look *look, uint64_t *spent_ns)
{
	uint64_t spent = now(CLOCK_MONOTONIC) - look->began_ns;

	*spent_ns = spent > driver.ring->clock_ns ? spent - driver.ring->clock_ns : 0;
	if (spent < SLOW_NS || switches() == look->switches)
		return true;
	driver.ring->interrupted++;
	return false;
}

// ---- calls ----

// A realloc to 0 is one to 1 byte: to 0 it would free, and what a slot holds would depend on the
// allocator.
static void *allocate(const struct replay_ring_record *record, struct replay_ring_slot *slot)
{
	switch (record->op) {
	case REPLAY_RING_CALLOC:
		return calloc(1, record->size);
	case REPLAY_RING_ALIGNED:
		return memalign((size_t)1 << (record->align_log2 & 63), record->size);
	case REPLAY_RING_REALLOC:
		return realloc(slot->block, record->size ? record->size : 1);
	default:
		return malloc(record->size);
	}
}

// Of a block that grew only the new part, as the program would have written the old one before.
static void touch(char *block, uint64_t from, uint64_t size)
{
	if (driver.ring->touch == REPLAY_RING_ALL && size > from)
		memset(block + from, TOUCHED, size - from);
	else if (driver.ring->touch == REPLAY_RING_FIRST && size > 0 && from == 0)
		*block = TOUCHED;
}

// One call of REPLAY_RING_TIMED is timed, as two looks at the clock cost as much as a small malloc.
static void begin_block(const struct replay_ring_record *record, struct replay_ring_slot *slot)
{
	struct replay_ring_class *class = class_of(record->size);
	bool timed = driver.calls++ % REPLAY_RING_TIMED == 0;
	struct look look = timed ? begin_look() : (struct look){ 0 };
	uint64_t spent_ns;
	uint64_t old = record->op == REPLAY_RING_REALLOC ? slot->size : 0;
	void *block = allocate(record, slot);

	timed = timed && end_look(&look, &spent_ns);
	class->count++;
	class->bytes += record->size;
	if (!block) {
		driver.ring->failed++;
		return;
	}
	if (timed) {
		class->timed++;
		class->timed_ns += spent_ns;
		class->timed_squares += (double)spent_ns * (double)spent_ns;
	}
	if (timed && driver.knows_usable) {
		class->usable_count++;
		class->usable_bytes += malloc_usable_size(block);
		class->usable_asked += record->size;
	}
	slot->block = block;
	slot->size = record->size;
	touch(block, old, record->size);
}

// As begin_block; a block that is not there, since its call failed, is NULL, which free accepts.
static void end_block(struct replay_ring_slot *slot)
{
	struct replay_ring_class *class = class_of(slot->size);
	bool timed = driver.calls++ % REPLAY_RING_TIMED == 0;
	struct look look = timed ? begin_look() : (struct look){ 0 };
	uint64_t spent_ns;

	free(slot->block);
	slot->block = NULL;
	if (timed && end_look(&look, &spent_ns)) {
		class->freed++;
		class->freed_ns += spent_ns;
		class->freed_squares += (double)spent_ns * (double)spent_ns;
	}
}

// A dry run makes no call and touches nothing but the slot: what it takes is the driver's own.
static void make_call(const struct replay_ring_record *record)
{
	struct replay_ring_slot *slot = &driver.slots[record->slot];

	driver.ring->events++;
	if (driver.ring->dry) {
		slot->size = record->size;
		slot->block = slot;
	} else if (record->op == REPLAY_RING_FREE) {
		end_block(slot);
	} else {
		begin_block(record, slot);
	}
}

// The slot of a call to come is fetched from memory meanwhile; its block is not, for that would be
// time of the allocator's.
static void expect_slot(const struct replay_ring_record *record)
{
	if (driver.end - record > SLOTS_AHEAD)
		__builtin_prefetch(&driver.slots[record[SLOTS_AHEAD].slot], 1);
}

// ---- turns ----

// The chunk before is empty, and the next is waited for.
static void next_chunk(void)
{
	if (driver.end)
		sem_post(&driver.ring->empty);
	while (sem_wait(&driver.ring->full) != 0)
		;
	driver.at = driver.ring->records[driver.chunk++ % REPLAY_RING_CHUNKS];
	driver.end = driver.at + REPLAY_RING_RECORDS;
}

static void *play(void *word);

// Its stack is shared memory, so that it does not count as private, which is the allocator's.
static void start_thread(uint16_t thread)
{
	pthread_attr_t attributes;

	if (driver.ended[thread])
		pthread_join(driver.threads[thread], NULL);
	driver.ended[thread] = false;
	if (!driver.stacks[thread])
		driver.stacks[thread] = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (driver.stacks[thread] == MAP_FAILED)
		die("cannot have a stack");
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, driver.stacks[thread], STACK_BYTES);
	driver.started[thread] = true;
	if (pthread_create(&driver.threads[thread], &attributes, play, (void *)(uintptr_t)thread) !=
	    0)
		die("cannot start a thread");
}

// Only one thread runs at a time: the order of calls is the trace's, whatever the scheduler does.
static void hand_turn(uint16_t to)
{
	_Atomic uint32_t *turn = &driver.turn[to];
	bool starts = !driver.started[to];

	atomic_store(turn, 1);
	if (starts)
		start_thread(to);
	else
		syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

// Spins first: a turn mostly comes back within a microsecond, and a sleep costs ten.
static void await_turn(uint16_t thread)
{
	_Atomic uint32_t *turn = &driver.turn[thread];

	for (int i = 0; i < SPINS && !atomic_load_explicit(turn, memory_order_relaxed); i++)
		__builtin_ia32_pause();
	while (!atomic_load(turn))
		syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	atomic_store(turn, 0);
}

// _exit, so that no destructor frees what still lives.
static void finish(void)
{
	struct rusage usage;

	driver.ring->cpu_ns = now(CLOCK_PROCESS_CPUTIME_ID) - driver.begin_ns - driver.paused_ns;
	getrusage(RUSAGE_SELF, &usage);
	driver.ring->minor_faults = (uint64_t)(usage.ru_minflt - driver.begin_minor);
	driver.ring->major_faults = (uint64_t)(usage.ru_majflt - driver.begin_major);
	driver.ring->done = 1;
	_exit(0);
}

// Take records as long as they are this thread's. A thread that ends hands the turn on first.
static void *play(void *word)
{
	uint16_t thread = (uint16_t)(uintptr_t)word;

	await_turn(thread);
	for (;;) {
		const struct replay_ring_record *record;

		if (driver.at == driver.end)
			next_chunk();
		record = driver.at;
		if (record->op == REPLAY_RING_END)
			finish();
		if (record->op == REPLAY_RING_SAMPLE) {
			take_sample(record->slot);
			driver.at++;
		} else if (record->thread != thread) {
			hand_turn(record->thread);
			await_turn(thread);
		} else if (record->op == REPLAY_RING_THREAD_END) {
			driver.at++;
			break;
		} else {
			expect_slot(record);
			make_call(record);
			driver.at++;
		}
	}
	// Thread 0 is the process's first, which stays; it has what comes next.
	driver.started[thread] = false;
	driver.ended[thread] = true;
	hand_turn(0);
	return NULL;
}

// ---- the whole ----

// The slots are as large as addresses allow and take memory where they are used: the kernel is
// asked not to set any aside (MAP_NORESERVE).
static void open_ring(int file)
{
	uint64_t bytes = REPLAY_RING_SLOTS * sizeof(struct replay_ring_slot);

	driver.ring = mmap(NULL, sizeof *driver.ring, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (driver.ring == MAP_FAILED)
		die("cannot map the ring");
	driver.slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
			    (off_t)REPLAY_RING_SLOTS_AT);
	if (driver.slots == MAP_FAILED)
		die("cannot map the slots");
	driver.status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
}

// The least of a hundred: all else is interruption.
static void measure_clock(void)
{
	uint64_t least = UINT64_MAX, least_look = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t began_ns = now(CLOCK_MONOTONIC);
		uint64_t spent = now(CLOCK_MONOTONIC) - began_ns;

		if (spent < least)
			least = spent;
		switches();
		spent = now(CLOCK_MONOTONIC) - began_ns;
		if (spent < least_look)
			least_look = spent;
	}
	driver.ring->clock_ns = least;
	driver.look_ns = least_look;
}

// By the linker's own look-up: where our calls go.
static bool find_library(const char *function, Dl_info *info)
{
	void *at = dlsym(RTLD_DEFAULT, function);

	return at && dladdr(at, info) && info->dli_fname;
}

// Everything that could cost time or memory is done before the first look at the clock.
//
// A library that has malloc and no malloc_usable_size is not asked: the C library's would read what
// is before the block.
int main(int argc, char **argv)
{
	struct rusage usage;
	Dl_info info, other;

	if (argc != 2) {
		fprintf(stderr, "tidemark-replay is run by tidemark replay alone\n");
		return 2;
	}
	open_ring(atoi(argv[1]));
	if (find_library("malloc", &info)) {
		strncpy(driver.ring->library, info.dli_fname, sizeof driver.ring->library - 1);
		driver.knows_usable = find_library("malloc_usable_size", &other) &&
				      other.dli_fbase == info.dli_fbase;
	}
	measure_clock();
	getrusage(RUSAGE_SELF, &usage);
	driver.begin_minor = usage.ru_minflt;
	driver.begin_major = usage.ru_majflt;
	driver.begin_ns = now(CLOCK_PROCESS_CPUTIME_ID);
	driver.started[0] = true;
	driver.turn[0] = 1;
	play(NULL);
	return 0;
}
