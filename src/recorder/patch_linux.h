// patch: the system-call sites of libc and the dynamic linker.
//
// libc calls the kernel for itself where no symbol can be interposed: posix_spawn and system exec,
// free unmaps, a thread's end unmaps its stack. Each such call is one instruction pair of exactly
// seven bytes, `mov $nr,%eax; syscall`; its first five become a jump to a thunk of ours near by.
// On i386 they are calls through the thread's own block (patch_i386_linux.c).
//
// Three things are needed from them: a new image must find the recorder even when the program
// gives it an empty environment (execve), calls on virtual memory are recorded (vm.h), and cached
// stacks and code must be forgotten when their memory goes away. syscall() is such a site as well,
// for programs that call the kernel by number. What may not be patched, or looks otherwise, is
// left as it is: then hook_vm_linux.c sees the program's own calls of that function, libc's and the
// linker's are looked up in the list of mappings now and then, and a child is seen only if the
// environment is passed on.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Patch what can be patched. Called once per image, before any other thread exists.
HIDDEN void patch_start(void);

struct scope_object;

// A library was loaded, and its code has not run yet.
HIDDEN void patch_loaded(const struct scope_object *object);

// One that was is about to be unmapped: its thunks go with it.
HIDDEN void patch_unloaded(uintptr_t start, uintptr_t bytes);

// Where the code of a library is.
struct patch_code {
	uintptr_t start, end; // 0: not known
};

// Of a loaded object.
HIDDEN struct patch_code patch_code_of(const struct scope_object *object);

// libc's. (It is one stretch of addresses.)
HIDDEN struct patch_code patch_libc(void);

// For each image, and each forked child: tell the collector what came of it.
HIDDEN void patch_tell(void);

// Places that are no numbers of calls: posix_madvise, which makes the same call as madvise, and
// syscall(), which makes any.
enum { PATCH_SYSCALL = 510, PATCH_POSIX_MADVISE = 511, PATCH_NUMBERS = 512 };

HIDDEN extern uint64_t patch_covered[PATCH_NUMBERS / 64];

static inline void patch_cover(uint32_t number)
{
	patch_covered[number / 64] |= 1ull << number % 64;
}

// Is the call with this number seen where libc's function makes it?
static inline bool patch_covers(uint32_t number)
{
	return patch_covered[number / 64] >> number % 64 & 1;
}

// For the two that patch, each on its processor: the functions of libc that make a call.
struct patch_function {
	const char *name;
	uint32_t number;
	uint32_t place; // by which it is asked for: the number, where that is not another's
};

HIDDEN extern const struct patch_function patch_functions[];
HIDDEN extern const size_t patch_functions_count;

// Sites that were patched and, of those functions, how many were not.
HIDDEN extern uint32_t patch_done, patch_missing;
HIDDEN extern bool patch_dispatched; // strict_linux.h is at work
