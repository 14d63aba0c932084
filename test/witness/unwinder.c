// unwinder: a second opinion on stacks, by libunwind or, for programs of 32 bits, by libgcc.
//
// Loaded with LD_PRELOAD behind the recorder, it sees the same allocating calls. At every Nth of a
// thread (UNWINDER_EVERY) it walks the stack with that and appends what it found to the file
// UNWINDER_PID: u32 tid, u32 frames, u64 how-manieth allocating call of this thread, then the
// frames' u64 addresses, innermost first. test/guest/unwinder.py compares them with the trace.
//
// Allocating calls are those that are recorded with a stack: all that return memory, and those that
// fail, but not a realloc to nothing that frees.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef UNWINDER_LIBGCC
#include <unwind.h>
#else
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

enum { DEPTH_MAX = 4000, PATH_BYTES = 512 };

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *ptr, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
} real;

static __thread uint64_t calls __attribute__((tls_model("initial-exec")));
static __thread char busy __attribute__((tls_model("initial-exec")));

static void *unwinder_next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		_exit(96);
	return found;
}

static void unwinder_find(void)
{
	if (real.malloc)
		return;
	*(void **)&real.calloc = unwinder_next("calloc");
	*(void **)&real.realloc = unwinder_next("realloc");
	*(void **)&real.memalign = unwinder_next("memalign");
	*(void **)&real.malloc = unwinder_next("malloc");
}

static void unwinder_write(const uint64_t *words, size_t count)
{
	char path[PATH_BYTES];
	const char *folder = getenv("UNWINDER");
	int fd;

	snprintf(path, sizeof(path), "%s_%d", folder, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, words, 8 * count) != (ssize_t)(8 * count))
		_exit(97);
	close(fd);
}

// The addresses of the frames, innermost first, into `words`. Returns how many.
#ifdef UNWINDER_LIBGCC

struct unwinder_list {
	uint64_t *words;
	uint32_t depth;
};

static _Unwind_Reason_Code unwinder_frame(struct _Unwind_Context *context, void *argument)
{
	struct unwinder_list *list = argument;
	uintptr_t ip = _Unwind_GetIP(context);

	if (!ip || list->depth == DEPTH_MAX)
		return _URC_END_OF_STACK;
	list->words[list->depth++] = ip;
	return _URC_NO_REASON;
}

static __attribute__((noinline)) uint32_t unwinder_step_out(uint64_t *words)
{
	struct unwinder_list list = { .words = words };

	_Unwind_Backtrace(unwinder_frame, &list);
	return list.depth;
}

#else

static __attribute__((noinline)) uint32_t unwinder_step_out(uint64_t *words)
{
	unw_context_t context;
	unw_cursor_t cursor;
	uint32_t depth = 0;

	// What it keeps by address is of the library that was there before, now and then.
	unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	while (depth < DEPTH_MAX) {
		unw_word_t ip = 0;

		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		if (!ip)
			break;
		words[depth++] = ip;
		if (unw_step(&cursor) <= 0)
			break;
	}
	return depth;
}

#endif

static __attribute__((noinline)) void unwinder_walk(uint64_t number)
{
	static __thread uint64_t words[2 + DEPTH_MAX] __attribute__((tls_model("initial-exec")));
	uint32_t depth = unwinder_step_out(words + 2);

	words[0] = (uint64_t)depth << 32 | (uint32_t)syscall(SYS_gettid);
	words[1] = number;
	unwinder_write(words, 2 + depth);
}

static void unwinder_called(void)
{
	static unsigned every;
	uint64_t number = calls++;
	int error = errno;

	if (!every)
		every = getenv("UNWINDER") && getenv("UNWINDER_EVERY") &&
					strcmp(program_invocation_short_name, "tidemark") != 0
				? (unsigned)atoi(getenv("UNWINDER_EVERY"))
				: UINT32_MAX;
	if (number % every == every - 1 && !busy) {
		busy = 1;
		unwinder_walk(number);
		busy = 0;
	}
	errno = error;
}

void *malloc(size_t size)
{
	void *ptr;

	unwinder_find();
	ptr = real.malloc(size);
	unwinder_called();
	return ptr;
}

void *calloc(size_t count, size_t size)
{
	void *ptr;

	unwinder_find();
	ptr = real.calloc(count, size);
	unwinder_called();
	return ptr;
}

void *realloc(void *old, size_t size)
{
	void *ptr;

	unwinder_find();
	ptr = real.realloc(old, size);
	if (ptr || size)
		unwinder_called();
	return ptr;
}

static void *unwinder_aligned(size_t alignment, size_t size)
{
	void *ptr;

	unwinder_find();
	ptr = real.memalign(alignment, size);
	unwinder_called();
	return ptr;
}

void *memalign(size_t alignment, size_t size)
{
	return unwinder_aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return unwinder_aligned(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *ptr = unwinder_aligned(alignment, size);

	if (!ptr)
		return ENOMEM;
	*out = ptr;
	return 0;
}
