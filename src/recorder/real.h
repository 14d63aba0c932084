// real: the functions behind our hooks, as the program would have got them without us.
//
// Each starts as a function that finds the real one first, so that a hook needs no test. What no
// library of the program defines ends as a function that fails as such a function fails.
#ifndef RECORDER_REAL_H
#define RECORDER_REAL_H

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct real {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
};

HIDDEN extern struct real real;

// Look all of them up. Idempotent. Called under recording_begin, before any other thread exists.
HIDDEN void real_find(void);

#endif
