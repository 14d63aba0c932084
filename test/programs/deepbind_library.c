// What deepbind opens: it asks the C library itself for malloc and its family, in whatever way.
#include "deepbind.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct deepbind *deep, void *(*taker)(size_t), void (*giver)(void *))
{
	deep->malloc = taker;
	deep->free = giver;
}

bool deep_find(enum deepbind_way way, struct deepbind *deep)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	switch (way) {
	case DEEPBIND_SYMBOL:
		fill(deep, malloc, free);
		break;
	case DEEPBIND_NEXT:
		*(void **)&deep->malloc = dlsym(RTLD_NEXT, "malloc");
		*(void **)&deep->free = dlsym(RTLD_NEXT, "free");
		break;
	case DEEPBIND_HANDLE:
		*(void **)&deep->malloc = dlsym(libc, "malloc");
		*(void **)&deep->free = dlsym(libc, "free");
		break;
	case DEEPBIND_VERSION:
		*(void **)&deep->malloc = dlvsym(libc, "malloc", "GLIBC_2.2.5");
		*(void **)&deep->free = dlvsym(libc, "free", "GLIBC_2.2.5");
		break;
	default:
		return false;
	}
	return deep->malloc && deep->free;
}

void *deep_resize(void *block, size_t size)
{
	return realloc(block, size);
}

void *deep_zeroed(size_t count, size_t size)
{
	return calloc(count, size);
}

void *deep_array(void *block, size_t count, size_t size)
{
	return reallocarray(block, count, size);
}

void *deep_aligned(size_t size)
{
	void *block = NULL;

	return posix_memalign(&block, 64, size) == 0 ? block : NULL;
}

char *deep_copy(const char *text)
{
	return strdup(text);
}
