// pass: the least that standing in front of malloc can cost: call the next one, record nothing.
//
// Loaded with LD_PRELOAD by tools/bench --stages, to tell the price of being called from that of
// what is then done.
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

static void *(*pass_malloc)(size_t size);
static void (*pass_free)(void *ptr);

static void pass_find(void)
{
	*(void **)&pass_malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&pass_free = dlsym(RTLD_NEXT, "free");
	if (!pass_malloc || !pass_free)
		_exit(96);
}

void *malloc(size_t size)
{
	if (__builtin_expect(!pass_malloc, 0))
		pass_find();
	return pass_malloc(size);
}

void free(void *ptr)
{
	if (__builtin_expect(!pass_free, 0))
		pass_find();
	pass_free(ptr);
}
