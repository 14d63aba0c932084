// For example, a file of three pages is viewed, and another program cuts it to one. A read in the
// second page is a SIGBUS: the handler finds the mapping, puts a page of zeros there, and notes
// that it is torn. The reader goes on with zeros, which no checksum agrees with, and when the view
// is closed mapped_forget says that it was torn.
#include "os/mapped.h"

#include "base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// One mapping. Links are only ever added, so that a signal handler may follow them at any time;
// one of size 0 is free.
// A free link is used again; none is ever freed, since a handler may be looking at it.
struct link {
	struct link *next;
	atomic_uintptr_t start;
	atomic_size_t size;
	atomic_bool torn;
};

static _Atomic(struct link *) links;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct link *find(uintptr_t address)
{
	for (struct link *link = atomic_load(&links); link; link = link->next) {
		uintptr_t start = atomic_load(&link->start);

		if (address >= start && address - start < atomic_load(&link->size))
			return link;
	}
	return NULL;
}

// Put a page of zeros where there is none. Of anybody else's fault we die as everybody does.
// Only what a signal handler may do: the list is read by atomics, and mmap is a system call. A
// fault that is not ours gets the default action, and the instruction that failed runs again and
// ends us.
static void on_bus(int number, siginfo_t *info, void *)
{
	// Asked each time rather than kept: the handler runs once for each page that is missing, at
	// most.
	uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t address = (uintptr_t)info->si_addr;
	struct link *link = find(address);

	if (link && mmap((void *)(address / page_size * page_size), page_size, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		atomic_store(&link->torn, true);
	else
		signal(number, SIG_DFL);
}

// The size is stored last: until then the link is free to a handler.
void mapped_watch(const void *start, size_t size)
{
	// Each time: somebody may have put another in its place.
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	struct link *link;

	ASSERT(start != NULL); // of an empty file, too
	pthread_mutex_lock(&mutex);
	sigaction(SIGBUS, &action, NULL);
	// A walk over all: a process has a few dozen files mapped, and a free link is worth more
	// than the time.
	for (link = atomic_load(&links); link && atomic_load(&link->size) > 0; link = link->next)
		;
	if (!link) {
		link = mem_alloc(1, sizeof *link);
		link->next = atomic_load(&links);
		atomic_store(&links, link);
	}
	atomic_store(&link->torn, false);
	atomic_store(&link->start, (uintptr_t)start);
	atomic_store(&link->size, size);
	pthread_mutex_unlock(&mutex);
}

// Before the mapping goes, since another one may be at its address next.
bool mapped_forget(const void *start)
{
	bool torn = false;

	pthread_mutex_lock(&mutex);
	for (struct link *link = atomic_load(&links); link; link = link->next) {
		if (atomic_load(&link->size) == 0 || atomic_load(&link->start) != (uintptr_t)start)
			continue;
		torn = atomic_load(&link->torn);
		atomic_store(&link->size, 0);
		break;
	}
	pthread_mutex_unlock(&mutex);
	return torn;
}
