// wrapped: an executable that exports a malloc of its own, in front of the C library's: each block
// has a header. It makes ten blocks of 7821 bytes, resizes each to 7822, and frees them.
#include "guest.h"

#include <dlfcn.h>

enum { HEADER = 64 };

void *malloc(size_t size)
{
	static void *(*next)(size_t);
	char *block;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "malloc");
	block = next(size + HEADER);
	*(size_t *)block = size;
	return block + HEADER;
}

void free(void *ptr)
{
	static void (*next)(void *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "free");
	if (ptr)
		next((char *)ptr - HEADER);
}

void *calloc(size_t count, size_t size)
{
	return memset(malloc(count * size), 0, count * size);
}

void *realloc(void *old, size_t size)
{
	void *ptr = malloc(size);
	size_t before = old ? *(size_t *)((char *)old - HEADER) : 0;

	memcpy(ptr, old, before < size ? before : size);
	free(old);
	return ptr;
}

int main(void)
{
	void *volatile blocks[10];

	for (int i = 0; i < 10; i++)
		blocks[i] = malloc(7821);
	for (int i = 0; i < 10; i++)
		blocks[i] = realloc(blocks[i], 7822);
	for (int i = 0; i < 10; i++)
		free(blocks[i]);
	return 0;
}
