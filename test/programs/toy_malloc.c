// toy_malloc: an executable with its own malloc: calls bind inside it.
//
// It is recorded as any other, be it exported or hidden. The program runs as without a recorder.
//
// With an argument it asks for what it does not have itself: the C library's reallocarray, which
// calls realloc by name, and so the program's, makes a block of 7002 bytes one of 7007; and so
// much more that it fails. free_sized, if there is one, frees that.
#include "guest.h"

#include <errno.h>
#include <stdint.h>

static char memory[1 << 24];
static size_t used;

void *malloc(size_t size)
{
	void *ptr = memory + used;

	used += (size + 31) & ~(size_t)15;
	if (used > sizeof(memory))
		return NULL;
	((size_t *)ptr)[0] = size;
	return (char *)ptr + 16;
}

void free(void *ptr)
{
	(void)ptr;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); // memory was never used before
}

void *realloc(void *old, size_t size)
{
	void *ptr = malloc(size);

	if (ptr && old) {
		size_t had = *(size_t *)((char *)old - 16);

		memcpy(ptr, old, had < size ? had : size);
	}
	return ptr;
}

// From here and there, so that stacks are known again: calloc calls malloc.
static void *volatile kept;

static __attribute__((noinline)) void here(int depth)
{
	if (depth > 0)
		here(depth - 1);
	else
		kept = calloc(1, 103);
	__asm__ volatile("");
}

static __attribute__((noinline)) void there(int depth)
{
	if (depth > 0)
		there(depth - 1);
	else
		kept = calloc(1, 103);
	__asm__ volatile("");
}

void free_sized(void *block, size_t size) __attribute__((weak));

static void ask_others(void)
{
	void *volatile block = malloc(7002), *volatile no;

	memcpy(block, "seven", 6);
	block = reallocarray(block, 7, 1001);
	errno = 0;
	no = reallocarray(block, SIZE_MAX / 2, 3);
	guest_say("%s %d\n", (char *)block, !no && errno == ENOMEM);
	if (free_sized)
		free_sized(block, 7007);
	else
		free(block);
}

int main(int argc, char **)
{
	if (argc > 1)
		ask_others();
	for (int i = 0; i < 100; i++)
		guest_pair(7001);
	for (int i = 0; i < 5000; i++) {
		here(i % 3);
		there(3 - i % 2);
	}
	guest_say("%s\n", strdup("toy"));
	return 0;
}
