// static: the recorder in a program that is linked statically, brought in by the launcher before
// the program's first call of its allocator (launch/loader_linux.h).
//
// What differs: nobody binds a symbol to us, so all that is seen is entered (enter_linux.h): the
// allocator, and what asks the kernel for memory where its system-call sites do not look as
// patch_linux.h knows them. Where a function is says the program's own symbol table, which
// scope_linux.h reads for us; the program is its own C library. The list of loaded objects, which
// the launcher makes, has two: the program and the recorder.
//
// Of 64 bits only.
#pragma once

#include "recorder/elf.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attach_call;

#ifdef __x86_64__

// Whether it is such a program. From static_begin or static_find_program on.
HIDDEN bool static_is(void);

// Where in the program a function (or `data`) of that name is. NULL: nowhere, or in several files
// that each have their own. (What is hidden, as all of libc in a position-independent program, is
// local in the end.) Only between static_begin, or static_find_program, and static_forget.
HIDDEN void *static_find(const char *name, bool data);

// How long the function at this address is; 0: it is not known.
HIDDEN uintptr_t static_size(uintptr_t at);

// Enter what asks the kernel for memory where that is not seen otherwise, and what forks. Does
// nothing in another program.
HIDDEN void static_enter(void);

// What an operator new of the program's that was entered is, by its name: the way around our jump.
// NULL: it has none of that name.
HIDDEN void *static_operator(const char *name);

// Join the session and enter the program. The answer is in `call`. Called once, by the launcher's
// borrowed thread, before the program's first call of its allocator.
HIDDEN void static_begin(struct attach_call *call);

// The first of that, for a program that runs already: its symbols are read. False: they cannot be.
HIDDEN bool static_find_program(void);

// What tidemark.h asks for is found, where the recorder came late.
HIDDEN void static_fill_places(void);

// The program's symbols are needed no more. Does nothing in another program.
HIDDEN void static_forget(void);

#else

static inline bool static_is(void)
{
	return false;
}

static inline void *static_find(const char *name, bool data)
{
	(void)name;
	(void)data;
	return NULL;
}

static inline uintptr_t static_size(uintptr_t at)
{
	(void)at;
	return 0;
}

static inline void static_enter(void)
{
}

static inline void *static_operator(const char *name)
{
	(void)name;
	return NULL;
}

static inline void static_begin(struct attach_call *call)
{
	(void)call;
}

static inline bool static_find_program(void)
{
	return false;
}

static inline void static_fill_places(void)
{
}

static inline void static_forget(void)
{
}

#endif
