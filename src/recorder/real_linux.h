// real: the functions behind our hooks, as the program would have got them without us.
//
// Each starts as a function that finds the real one first, so that a hook needs no test. What no
// library of the program defines ends as a function that fails as such a function fails.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The C library's functions, or those of an allocator that comes before it, with the C library's
// types. Those of malloc's family are never NULL. Where their entries are patched (enter_linux.h),
// what is here is the way around our jump.
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

	// What an object before ours (the executable) has by that name, and so is found by it, with
	// a jump to a hook of ours in it or without. NULL: none has, ours are found.
	void *(*realloc_before)(void *, size_t);
	void (*free_before)(void *);

	// What asks the kernel for memory (hook_vm_linux.c). NULL: not found yet, or there is none.
	void *(*mmap)(void *, size_t, int, int, int, long);
	void *(*mmap64)(void *, size_t, int, int, int, int64_t);
	int (*munmap)(void *, size_t);
	void *(*mremap)(void *, size_t, size_t, int, void *);
	int (*brk)(void *);
	void *(*sbrk)(intptr_t);
	int (*mprotect)(void *, size_t, int);
	int (*pkey_mprotect)(void *, size_t, int, int);
	int (*madvise)(void *, size_t, int);
	int (*posix_madvise)(void *, size_t, int);
	long (*process_madvise)(int, const void *, size_t, int, unsigned);
	int (*mlock)(const void *, size_t);
	int (*mlock2)(const void *, size_t, unsigned);
	int (*munlock)(const void *, size_t);
	int (*mlockall)(int);
	int (*munlockall)(void);
	void *(*shmat)(int, const void *, int);
	int (*shmdt)(const void *);
	int (*remap_file_pages)(void *, size_t, int, size_t, int);
	long (*syscall)(long, long, long, long, long, long, long);
	// Where the calling thread's errno is: it is asked for each time.
	int *(*errno_location)(void);
	int (*bare_fork)(void); // _Fork
	int (*clone)(int (*)(void *), void *, int, void *, long, long, long);
	int (*prctl)(int, long, long, long, long);
	int (*dlclose)(void *);

	// How a child's end is waited for (hook_wait_linux.c).
	int (*wait4)(int, int *, int, void *);
	int (*waitid)(int, unsigned, void *, int);
};

HIDDEN extern struct real real;

// Look all of them up. Idempotent. Called under recording_begin, before any other thread exists.
HIDDEN void real_find(void);

// Where the function of that name is kept, if it is one of malloc's family; or NULL.
HIDDEN void **real_get(const char *name);
