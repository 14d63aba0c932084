// tracer_library: another tracer, to be preloaded. It does what such tracers do, and what makes
// them hard to live with:
//
// - malloc and its kin take a lock, and a thread of its own holds that most of the time: a child
//   that forks without an exec finds it held for ever;
// - it keeps a pipe by its numbers and, in a child, closes those, whatever they are by then
//   (libunwind does), and makes another pipe;
// - it removes LD_PRELOAD from the environment, so that children are not traced.
//
// The environment's TRACER_LOCKS=no: no thread.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipe_ends[2] = { -1, -1 };
static pid_t owner;

static void enter(void)
{
	pthread_mutex_lock(&lock);
	if (owner == getpid())
		return;
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	if (pipe(pipe_ends) != 0)
		_exit(99);
	owner = getpid();
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

void *malloc(size_t size)
{
	void *block;

	enter();
	block = __libc_malloc(size);
	leave();
	return block;
}

void *calloc(size_t count, size_t size)
{
	void *block;

	enter();
	block = __libc_calloc(count, size);
	leave();
	return block;
}

void *realloc(void *block, size_t size)
{
	enter();
	block = __libc_realloc(block, size);
	leave();
	return block;
}

void free(void *block)
{
	enter();
	__libc_free(block);
	leave();
}

static void *hold(void *unused)
{
	for (;;) {
		enter();
		usleep(2000);
		leave();
		usleep(100);
	}
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	const char *locks = getenv("TRACER_LOCKS");
	pthread_t thread;

	unsetenv("LD_PRELOAD");
	if (!locks || strcmp(locks, "no") != 0)
		pthread_create(&thread, NULL, hold, NULL);
}
