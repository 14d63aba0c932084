// handover: threads that hand each other blocks, and write down what really happened.
//
//     handover LOG THREADS STEPS SEED [GENERATIONS]
//
// THREADS threads at once, each followed by another when it ends, GENERATIONS (4) in all, take
// blocks, put them into a table that all share and into each other's mailboxes, free what they find
// there, make blocks larger and smaller, and ask for more than there is. Each step is a call on
// memory or two.
//
// The truth that LOG holds comes from outside any recorder: each address has a number that its
// owner raises, by a plain store, when the allocator has given it out. What one owner wrote, the
// next one sees, because the allocator itself handed the address over. So the owners of an address
// stand in LOG in their true order, and each entry says which of them it is about.
//
// LOG: 64 bytes of head (threads in all, bytes of each one's log), then for each thread 16 bytes
// (tid, entries whose calls have returned) and its entries, 16 bytes each: address, owner's number,
// what. It is written as it happens, so that it outlives a kill.
//
// Where it crashes it says in which file's code: "crashed in PATH". An allocator may have
// defects of its own.
#include "guest.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { TABLE = 512, THREADS_MAX = 16, OWNER_BITS = sizeof(void *) == 8 ? 38 : 32 };

enum what { TAKEN = 1, GIVEN = 2, KEPT = 3 }; // KEPT: a realloc that failed

struct entry {
	uint64_t address;
	uint32_t owner;
	uint32_t what;
};

struct log {
	_Alignas(64) uint64_t tid;
	volatile uint64_t done;
	struct entry entries[];
};

struct mailbox {
	_Alignas(64) _Atomic(void *) block;
};

static struct {
	char *logs;
	size_t log_bytes;
	uint64_t log_entries, steps, seed;
	unsigned threads, generations;
	uint32_t *owners;
	_Atomic(void *) table[TABLE];
	struct mailbox mailboxes[THREADS_MAX];
} shared;

// Far too large for any address space of today.
static volatile size_t too_large = GUEST_TOO_MUCH;

static uint32_t *owner_of(const void *block)
{
	return &shared.owners[((uintptr_t)block & (((uint64_t)1 << OWNER_BITS) - 1)) >> 4];
}

static void note(struct log *log, const void *block, uint32_t owner, enum what what)
{
	struct entry *entry = &log->entries[log->done];

	guest_check(log->done < shared.log_entries, "the log is full");
	entry->address = (uintptr_t)block;
	entry->owner = owner;
	entry->what = what;
}

// What is noted counts once its call has returned.
static void returned(struct log *log, unsigned entries)
{
	log->done += entries;
}

static void *take(struct log *log, size_t size)
{
	void *block = malloc(size);

	guest_check(block != NULL, "malloc");
	note(log, block, ++*owner_of(block), TAKEN);
	returned(log, 1);
	return block;
}

static void give(struct log *log, void *block)
{
	if (!block)
		return;
	note(log, block, *owner_of(block), GIVEN);
	free(block);
	returned(log, 1);
}

// GIVEN and TAKEN are two entries: the second one's place is behind the first.
static void *resize(struct log *log, void *block, size_t size)
{
	uint32_t before = *owner_of(block);
	void *after = realloc(block, size);

	note(log, block, before, after ? GIVEN : KEPT);
	if (!after) {
		returned(log, 1);
		return block;
	}
	log->entries[log->done + 1] = (struct entry){ (uintptr_t)after, ++*owner_of(after), TAKEN };
	returned(log, 2);
	return after;
}

static uint32_t chance(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static void step(struct log *log, uint64_t *seed, unsigned number)
{
	uint32_t dice = chance(seed);
	_Atomic(void *) *place = &shared.table[chance(seed) % TABLE];
	size_t size = 16 + chance(seed) % (dice % 64 ? 500 : 20000);
	struct mailbox *box = &shared.mailboxes[chance(seed) % shared.threads];
	void *block, *none = NULL;

	switch (dice % 8) {
	case 0: // take out, resize, put back
		block = atomic_exchange_explicit(place, NULL, memory_order_acquire);
		if (!block)
			block = take(log, size);
		block = resize(log, block, dice % 128 ? size : too_large);
		give(log, atomic_exchange_explicit(place, block, memory_order_acq_rel));
		break;
	case 1: // a letter, by release and acquire alone
		block = take(log, size);
		if (!atomic_compare_exchange_strong_explicit(
			    &box->block, &none, block, memory_order_release, memory_order_relaxed))
			give(log, block);
		break;
	case 2: // one's own letters
		give(log, atomic_exchange_explicit(&shared.mailboxes[number].block, NULL,
						   memory_order_acquire));
		break;
	case 3: // a short life
		give(log, take(log, size));
		break;
	default:
		block = take(log, size);
		give(log, atomic_exchange_explicit(place, block, memory_order_acq_rel));
	}
	if (dice % 1024 == 0)
		sched_yield();
}

static void *work(void *argument)
{
	unsigned index = (unsigned)(uintptr_t)argument;
	struct log *log = (struct log *)(shared.logs + index * shared.log_bytes);
	uint64_t seed = shared.seed * 1000003 + index;

	log->tid = (uint64_t)syscall(SYS_gettid);
	for (uint64_t i = 0; i < shared.steps; i++)
		step(log, &seed, index % shared.threads);
	return NULL;
}

static void open_log(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	size_t logs = (size_t)shared.threads * shared.generations;
	size_t bytes;
	uint64_t *head;

	shared.log_entries = shared.steps * 4 + 8;
	shared.log_bytes = sizeof(struct log) + shared.log_entries * sizeof(struct entry);
	shared.log_bytes = (shared.log_bytes + 63) & ~(size_t)63;
	bytes = 64 + logs * shared.log_bytes;
	guest_check(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "cannot make the log");
	head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	guest_check(head != MAP_FAILED, "cannot map the log");
	close(fd);
	head[0] = logs;
	head[1] = shared.log_bytes;
	shared.logs = (char *)head + 64;
	shared.owners = mmap(NULL, sizeof(uint32_t) << (OWNER_BITS - 4), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	guest_check(shared.owners != MAP_FAILED, "cannot map the owners");
}

// Which file's code the address is in, by /proc/self/maps. Nothing is allocated: dprintf would, and
// what the thread was in the middle of would no longer be its last call.
static void say_where(uintptr_t pc)
{
	static char maps[1 << 18];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	while ((got = read(fd, maps + length, sizeof(maps) - 1 - length)) > 0)
		length += (size_t)got;
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
		char *rest;
		uintptr_t start = strtoul(line, &rest, 16);
		uintptr_t end = *rest ? strtoul(rest + 1, NULL, 16) : 0;
		char *path = strchr(line, '/');
		char text[4352];
		int size;

		if (pc < start || pc >= end)
			continue;
		size = snprintf(text, sizeof(text), "crashed in %s at +0x%lx of %lx\n",
				path ? path : "?", (unsigned long)(pc - start),
				(unsigned long)start);
		guest_check(write(STDERR_FILENO, text, (size_t)size) == size, "write");
	}
}

static void crashed(int number, siginfo_t *info, void *opaque)
{
	const ucontext_t *context = opaque;
	static _Atomic int told;

	(void)info;
#ifdef __x86_64__
	if (atomic_fetch_add(&told, 1) == 0)
		say_where((uintptr_t)context->uc_mcontext.gregs[REG_RIP]);
#else
	if (atomic_fetch_add(&told, 1) == 0)
		say_where((uintptr_t)context->uc_mcontext.gregs[REG_EIP]);
#endif
	raise(number); // SA_RESETHAND: this is the end
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = crashed,
				    .sa_flags = SA_SIGINFO | SA_RESETHAND };
	pthread_t threads[THREADS_MAX];

	guest_check(argc == 5 || argc == 6, "handover LOG THREADS STEPS SEED [GENERATIONS]");
	shared.generations = argc == 6 ? (unsigned)atoi(argv[5]) : 4;
	guest_check(shared.generations > 0, "no generations");
	shared.threads = (unsigned)atoi(argv[2]);
	shared.steps = (uint64_t)atoi(argv[3]) / shared.generations;
	shared.seed = (uint64_t)atoi(argv[4]);
	guest_check(shared.threads > 0 && shared.threads <= THREADS_MAX, "too many threads");
	open_log(argv[1]);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (unsigned n = 0; n < shared.threads * shared.generations; n++) {
		unsigned i = n % shared.threads;

		if (n >= shared.threads)
			pthread_join(threads[i], NULL);
		guest_check(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)n) == 0,
			    "pthread_create");
	}
	for (unsigned i = 0; i < shared.threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
