// deepbind: how its library gets at malloc.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum deepbind_way {
	DEEPBIND_SYMBOL,
	DEEPBIND_NEXT,    // dlsym(RTLD_NEXT, …)
	DEEPBIND_HANDLE,  // dlsym(libc, …)
	DEEPBIND_VERSION, // dlvsym
	DEEPBIND_WAYS,
};

struct deepbind {
	void *(*malloc)(size_t);
	void (*free)(void *);
};

bool deep_find(enum deepbind_way way, struct deepbind *deep);
void *deep_resize(void *block, size_t size);
void *deep_zeroed(size_t count, size_t size);
void *deep_array(void *block, size_t count, size_t size);
void *deep_aligned(size_t size);
char *deep_copy(const char *text);
