// witness: counts the memory calls of each process, by standing in front of malloc.
//
// Loaded with LD_PRELOAD, alone or behind the recorder; then both see the very same calls of the
// very same run. Every process image that finds a folder named by WITNESS maps a file there, PID.N,
// and counts into it: so the figures are whole whatever way the process ends, and a forked child
// counts for itself.
//
// A realloc of a live block is an allocation, a free and a reallocation; a realloc to nothing that
// frees is a free; free(NULL) is nothing; a call that fails counts in `failed` alone.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The file: read by test/real/libreal.py.
struct witness {
	uint64_t allocations, frees, bytes, reallocations, failed, calls;
	uint64_t aligned; // allocations by memalign and its kin
	uint64_t zero;    // allocations of no bytes
	char program[64];
};

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *ptr, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void (*free)(void *ptr);
} real;

static struct witness before_main; // until the file is there
static struct witness *counters = &before_main;
static char *same_process; // a page that a forked child finds wiped

static void *witness_next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		_exit(96);
	return found;
}

static void witness_find(void)
{
	*(void **)&real.malloc = witness_next("malloc");
	*(void **)&real.calloc = witness_next("calloc");
	*(void **)&real.realloc = witness_next("realloc");
	*(void **)&real.memalign = witness_next("memalign");
	*(void **)&real.free = witness_next("free");
}

// A file of this image's own. Counts that are there already go with it.
static void witness_open(const char *folder, const struct witness *already)
{
	struct witness *mapped;
	char path[256];
	int fd = -1;

	for (int n = 0; fd < 0 && n < 1000; n++) {
		snprintf(path, sizeof(path), "%s/%d.%d", folder, (int)getpid(), n);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	if (fd < 0 || ftruncate(fd, sizeof(*mapped)) != 0)
		_exit(97);
	mapped = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		_exit(97);
	*mapped = *already;
	strncpy(mapped->program, program_invocation_short_name, sizeof(mapped->program) - 1);
	counters = mapped;
	*same_process = 1;
}

__attribute__((constructor(101))) static void witness_begin(void)
{
	if (!getenv("WITNESS"))
		return;
	same_process = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (same_process == MAP_FAILED || madvise(same_process, 4096, MADV_WIPEONFORK) != 0)
		_exit(97);
	witness_open(getenv("WITNESS"), &before_main);
}

static struct witness *witness_now(void)
{
	static const struct witness none;

	if (same_process && !*same_process)
		witness_open(getenv("WITNESS"), &none);
	return counters;
}

static void witness_add(uint64_t *counter, uint64_t more)
{
	__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

static void witness_began(void *ptr, size_t size)
{
	struct witness *now = witness_now();

	if (!ptr) {
		witness_add(&now->failed, 1);
		return;
	}
	witness_add(&now->allocations, 1);
	witness_add(&now->bytes, size);
	witness_add(&now->zero, size == 0);
}

static void *witness_allocated(void *ptr, size_t size)
{
	witness_add(&witness_now()->calls, 1);
	witness_began(ptr, size);
	return ptr;
}

void *malloc(size_t size)
{
	if (!real.free)
		witness_find();
	return witness_allocated(real.malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
	if (!real.free)
		witness_find();
	return witness_allocated(real.calloc(count, size), count * size);
}

void free(void *ptr)
{
	if (!ptr)
		return;
	if (!real.free)
		witness_find();
	witness_add(&witness_now()->calls, 1);
	witness_add(&witness_now()->frees, 1);
	real.free(ptr);
}

void *realloc(void *old, size_t size)
{
	void *ptr;

	if (!real.free)
		witness_find();
	ptr = real.realloc(old, size);
	if (!old)
		return witness_allocated(ptr, size);
	witness_add(&witness_now()->calls, 1);
	if (ptr || size == 0)
		witness_add(&witness_now()->frees, 1);
	if (ptr)
		witness_add(&witness_now()->reallocations, 1);
	if (ptr || size > 0)
		witness_began(ptr, size);
	return ptr;
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (!__builtin_mul_overflow(count, size, &bytes))
		return realloc(old, bytes);
	witness_add(&witness_now()->calls, 1);
	witness_add(&witness_now()->failed, 1);
	errno = ENOMEM;
	return NULL;
}

// `size` was asked for, `whole` is what the C library makes of it.
static void *witness_aligned(size_t alignment, size_t size, size_t whole)
{
	void *ptr;

	if (!real.free)
		witness_find();
	ptr = witness_allocated(real.memalign(alignment, whole), size);
	if (ptr) {
		witness_add(&counters->aligned, 1);
	}
	return ptr;
}

void *memalign(size_t alignment, size_t size)
{
	return witness_aligned(alignment, size, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return witness_aligned(alignment, size, size);
}

void *valloc(size_t size)
{
	return witness_aligned(4096, size, size);
}

void *pvalloc(size_t size)
{
	return witness_aligned(4096, size, (size + 4095) & ~(size_t)4095);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *ptr;

	if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) {
		witness_add(&witness_now()->calls, 1);
		witness_add(&witness_now()->failed, 1);
		return EINVAL;
	}
	ptr = witness_aligned(alignment, size, size);
	if (!ptr)
		return ENOMEM;
	*out = ptr;
	return 0;
}
