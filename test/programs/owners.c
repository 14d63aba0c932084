// Memory of every owner, with the truth about each: twenty threads with stacks, arenas and large
// blocks, threads that free before they allocate, mappings of the program's own, files, libraries,
// a stream's buffer.
//
//     owners
//
// At the mark "here" all of it is there; what must be said of it stands in the output, a line each:
// LAYER ADDRESS OWNER, an address somewhere in it.
#include "guest.h"

#include "include/tidemark.h"

#include <alloca.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/auxv.h>

enum { PAGE = 4096, THREADS = 20, LARGE = 3 << 20, USES = 20000 };

static pthread_barrier_t ready, done;
static void *handed[THREADS];

// What a thread has, told by the main thread: 0 large block, 1 small block, 2 mapping, 3 stack.
static void *has[THREADS][4];

static void *thread(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	char here = 0;

	// Every second thread's first call on the heap is a free, and makes it an arena.
	if (number % 2)
		free(handed[number]);
	has[number][0] = malloc(LARGE);
	has[number][1] = malloc(100);
	has[number][2] =
		mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	has[number][3] = &here;
	guest_check(has[number][0] && has[number][1] && has[number][2] != MAP_FAILED, "memory");
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	return NULL;
}

// From so many frames further in.
static __attribute__((noinline)) void use_heap(unsigned depth)
{
	if (depth > 0)
		use_heap(depth - 1);
	else
		guest_pair(100);
	__asm__ volatile("" : : : "memory");
}

// A block, from a place on the stack where nothing was called from before.
static __attribute__((noinline)) void *take_elsewhere(size_t room_bytes, size_t bytes)
{
	volatile char *room = alloca(room_bytes);
	void *block;

	room[0] = 0;
	block = malloc(bytes);
	__asm__ volatile("" : : "r"(room) : "memory");
	return block;
}

static void say(const char *layer, const void *address, const char *owner)
{
	guest_say("%s %#lx %s\n", layer, (unsigned long)(uintptr_t)address, owner);
}

// The first page that is mapped is the library's own.
static void *load(const char *self)
{
	char path[4100];
	const char *slash = strrchr(self, '/');
	void *library, *function;

	snprintf(path, sizeof(path), "%.*s/libplugin_a.so", (int)(slash - self), self);
	library = dlopen(path, RTLD_NOW);
	guest_check(library != NULL, "dlopen");
	function = dlsym(library, "plugin_work");
	guest_check(function != NULL, "dlsym");
	return function;
}

int main(void)
{
	static char self[4000];
	pthread_t threads[THREADS];
	FILE *stream = fopen("owners.txt", "w");
	char *file, *own, *reserved, *function;
	int fd;

	guest_check(mallopt(M_ARENA_MAX, 2 * THREADS) == 1, "mallopt");
	guest_check(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0, "readlink");
	guest_check(stream && fputs("some text\n", stream) > 0 && fflush(stream) == 0, "stream");
	// Now the recorder looks for a stack among earlier ones first.
	for (unsigned i = 0; i < USES; i++)
		use_heap(i % 5);
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		handed[i] = take_elsewhere(64 + 32 * i, 7000 + i);
		guest_check(pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)i) == 0,
			    "pthread_create");
	}
	pthread_barrier_wait(&ready);
	fd = open("owners.txt", O_RDONLY | O_CLOEXEC);
	file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	own = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	reserved = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guest_check(file != MAP_FAILED && own != MAP_FAILED && reserved != MAP_FAILED, "mmap");
	function = load(self);
	tidemark_mark("here");
	for (int i = 0; i < THREADS; i++) {
		say("vm", has[i][0], "malloc-large");
		say("vm", has[i][1], "malloc-arena");
		say("vm", has[i][2], "program");
		say("vm", has[i][3], "thread-stack");
		say("heap", has[i][0], "malloc-large");
		say("heap", has[i][1], "malloc-arena");
	}
	say("vm", handed[0], "malloc-heap");
	say("heap", handed[0], "malloc-heap");
	say("vm", &fd, "main-stack");
	say("vm", self, "library");
	say("vm", function, "library");
	say("vm", (const void *)(uintptr_t)&getauxval, "library");
	say("vm", file, "file");
	say("vm", own, "program");
	say("vm", reserved, "program");
	say("vm", (const void *)getauxval(AT_SYSINFO_EHDR), "kernel");
	say("heap", stream, "malloc-heap");
	say("heap", stream->_IO_buf_base, "stdio");
	pthread_barrier_wait(&done);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
