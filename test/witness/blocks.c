// blocks: knows each block that lives, by standing in front of glibc's malloc; and as blocks_next
// (BLOCKS_NEXT), in front of the next one, of musl (BLOCKS_MUSL) too.
//
// Loaded with LD_PRELOAD. What lives is in `blocks_table`, which test/guest/before.py reads from
// the process's memory: where a block is, and how much of it may be used. Blocks of threads, of the
// dynamic linker and of libc itself are among them. With BLOCKS_SLOW=N in the environment each call
// takes so many pauses more, before and after glibc's. With BLOCKS_CLOCK=N blocks_next looks at the
// clock so many times more, whenever somebody does: the next malloc, in the midst of its work.
// Where a lock is given back, it wakes its waiters so many times more (there are none) with
// BLOCKS_WAKES=N, and sleeps so many microseconds with BLOCKS_NAP=N.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS_MAX = 1 << 21 };

struct blocks_entry {
	uintptr_t at; // 0: free; 1: was used
	size_t usable;
};

extern struct blocks_entry blocks_table[BLOCKS_MAX];
struct blocks_entry blocks_table[BLOCKS_MAX];

#ifndef BLOCKS_NEXT
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *ptr);
#else
static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define NEXT(name) (*(name##_is ? &name##_is : (*(void **)&name##_is = next(#name), &name##_is)))
static void *(*malloc_is)(size_t);
static void *(*calloc_is)(size_t, size_t);
static void *(*realloc_is)(void *, size_t);
#ifdef BLOCKS_MUSL // whose memalign calls another function by its name
static void *(*aligned_alloc_is)(size_t, size_t);
#else
static void *(*memalign_is)(size_t, size_t);
#endif
static void (*free_is)(void *);

#define __libc_malloc NEXT(malloc)
#define __libc_calloc NEXT(calloc)
#define __libc_realloc NEXT(realloc)
#ifdef BLOCKS_MUSL
#define __libc_memalign NEXT(aligned_alloc)
#else
#define __libc_memalign NEXT(memalign)
#endif
#define __libc_free NEXT(free)
#endif

static atomic_flag lock = ATOMIC_FLAG_INIT;
static unsigned slow;  // pauses
static unsigned looks; // at the clock
static unsigned wakes, nap;

static unsigned number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
	slow = number_of("BLOCKS_SLOW");
	looks = number_of("BLOCKS_CLOCK");
	wakes = number_of("BLOCKS_WAKES");
	nap = number_of("BLOCKS_NAP");
}

#if defined(BLOCKS_NEXT) && !defined(BLOCKS_MUSL)
static int (*clock_gettime_is)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *time)
{
	for (unsigned i = 0; i < looks; i++)
		NEXT(clock_gettime)(clock, time);
	return NEXT(clock_gettime)(clock, time);
}

static int (*pthread_mutex_unlock_is)(pthread_mutex_t *);

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static uint32_t word;

	for (unsigned i = 0; i < wakes; i++)
		syscall(SYS_futex, &word, 1 | 128, 1, NULL, NULL, 0); // FUTEX_WAKE_PRIVATE
	if (nap)
		usleep(nap);
	return NEXT(pthread_mutex_unlock)(mutex);
}
#endif

static void enter(void)
{
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		__builtin_ia32_pause();
}

static void leave(void)
{
	for (unsigned i = 0; i < slow; i++)
		__builtin_ia32_pause();
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

static struct blocks_entry *place_of(uintptr_t at, uintptr_t other)
{
	size_t i = (size_t)(at / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 43);

	while (blocks_table[i % BLOCKS_MAX].at != at && blocks_table[i % BLOCKS_MAX].at != 0 &&
	       blocks_table[i % BLOCKS_MAX].at != other)
		i++;
	return &blocks_table[i % BLOCKS_MAX];
}

static void *begin(void *ptr)
{
	struct blocks_entry *entry;

	if (!ptr)
		return NULL;
	enter();
	entry = place_of((uintptr_t)ptr, 1);
	entry->at = (uintptr_t)ptr;
	entry->usable = malloc_usable_size(ptr);
	leave();
	return ptr;
}

static void end(void *ptr)
{
	struct blocks_entry *entry;

	if (!ptr)
		return;
	enter();
	entry = place_of((uintptr_t)ptr, 0);
	if (entry->at)
		entry->at = 1;
	leave();
}

void *malloc(size_t size)
{
	return begin(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return begin(__libc_calloc(count, size));
}

// For a moment the table has neither block; nobody looks then.
void *realloc(void *ptr, size_t size)
{
	void *moved;

	end(ptr);
	moved = __libc_realloc(ptr, size);
	begin(moved ? moved : size ? ptr : NULL);
	return moved;
}

void *memalign(size_t alignment, size_t size)
{
	return begin(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *ptr = memalign(alignment, size);

	if (!ptr)
		return ENOMEM;
	*out = ptr;
	return 0;
}

void *valloc(size_t size)
{
	return memalign(4096, size);
}

void *pvalloc(size_t size)
{
	return memalign(4096, (size + 4095) & ~(size_t)4095);
}

void free(void *ptr)
{
	end(ptr);
	__libc_free(ptr);
}
