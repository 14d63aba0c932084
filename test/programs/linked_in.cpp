// linked_in: a program with an allocator of its own linked in, which it exports.
//
// By each function blocks of a size of their own, counted as "SIZE COUNT" lines: as many were
// allocated, and all are freed. What throws or jumps on its way out of operator new leaves nothing
// behind.
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MALLOCX
extern "C" void *mallocx(size_t size, int flags);
extern "C" void *rallocx(void *ptr, size_t size, int flags);
extern "C" void dallocx(void *ptr, int flags);
#endif

static void *volatile block;

static void said(size_t size, int count)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "%zu %d\n", size, count);

	if (write(STDOUT_FILENO, text, (size_t)length) != length)
		_exit(92);
}

static void check(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	_exit(99);
}

// A child's work, or a thread's.
static void *loop(void *argument)
{
	size_t size = (size_t)argument;

	for (int i = 0; i < 1000; i++) {
		void *ptr = malloc(size);

		free(ptr);
	}
	return NULL;
}

static void by_c()
{
	void *out = NULL;

	loop((void *)7801);
	said(7801, 1000);
	free(calloc(1, 7802));
	said(7802, 1);
	block = realloc(malloc(7803), 7903);
	said(7803, 1);
	block = realloc(block, 70903);
	block = realloc(block, 7904);
	said(7903, 1);
	said(7904, 1);
	free(block);
	check(posix_memalign(&out, 64, 7804) == 0, "posix_memalign");
	free(out);
	said(7804, 1);
	free(aligned_alloc(64, 7808));
	said(7808, 1);
	free(memalign(128, 7806));
	said(7806, 1);
	block = realloc(NULL, 7807);
	free(block);
	said(7807, 1);
}

struct thrower {
	char bytes[7812];
	thrower()
	{
		throw 1;
	}
};

struct alignas(128) wide {
	char bytes[7808 + 128 - 7808 % 128];
};

static void by_operators()
{
	delete[] new char[7810];
	said(7810, 1);
	operator delete(operator new(7811, std::nothrow));
	said(7811, 1);
	for (int i = 0; i < 100; i++) {
		try {
			block = new thrower;
		} catch (int) {
		}
		try {
			block = operator new(SIZE_MAX / 2 - 100);
		} catch (const std::bad_alloc &) {
		}
	}
	said(7812, 100);
	delete new wide;
	said(sizeof(wide), 1);
	block = operator new(7813);
	operator delete(block, (size_t)7813);
	said(7813, 1);
}

static jmp_buf out;

static void jump()
{
	longjmp(out, 1);
}

// Out of the allocator by longjmp, which leaves it and nothing else behind.
static void by_jumps()
{
	volatile int jumps = 0;

	std::set_new_handler(jump);
	if (setjmp(out) != 0)
		jumps = jumps + 1;
	if (jumps < 100) {
		free(malloc(7819));
		block = operator new(SIZE_MAX / 2 - 100);
	}
	std::set_new_handler(NULL);
	said(7819, 100);
}

static void by_others(const char *plugin)
{
	static char text[7814];
	pthread_t threads[4];
	void *library = dlopen(plugin, RTLD_NOW);
	void *(*plug)(size_t);

	memset(text, 'x', sizeof(text) - 1);
	free(strdup(text));
	said(7814, 1);
	check(library != NULL, "the plug-in");
	*(void **)&plug = dlsym(library, "plug");
	free(plug(7815));
	said(7815, 1);
	dlclose(library);
	for (pthread_t &thread : threads)
		pthread_create(&thread, NULL, loop, (void *)7816);
	for (pthread_t &thread : threads)
		pthread_join(thread, NULL);
	said(7816, 4000);
	if (fork() == 0) {
		loop((void *)7817);
		_exit(0);
	}
	wait(NULL);
	said(7817, 1000);
#ifdef MALLOCX
	void *ptr = rallocx(mallocx(7818, 0), 7918, 0);
	dallocx(ptr, 0);
	said(7818, 1);
	said(7918, 1);
#endif
}

int main(int, char **argv)
{
	by_c();
	by_operators();
	by_jumps();
	by_others(argv[1]);
	return 0;
}
