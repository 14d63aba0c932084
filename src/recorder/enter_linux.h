// enter: allocators that call themselves, entered by patches at the beginning of their functions.
//
// An executable that brings malloc along calls that one without asking anybody, and so do the
// libraries, because it comes first. A library with an allocator that it does not export calls that
// one, and what dlmopen loads finds nobody before its own C library. So each function of theirs
// that we have a hook for begins with a jump to that hook from the start on. The instructions that
// stood there are moved (relocate.h) to a *trampoline*, pages near the object, and go on after the
// jump: that is the real function of the hook (hook_entered_linux.c). The hook is entered with the
// caller's return address on the stack, and leaves the trampoline no frame of its own: what walks
// or unwinds the stack notices nothing.
//
// Where the functions are is said by what the object exports (an executable, or the first malloc of
// another namespace), by the symbol table of its file, or by the file of debugging information that
// its build-id or its .gnu_debuglink leads to (object_file_linux.h). Functions that go by names of
// their own (je_malloc, _rjem_malloc, duckdb_je_malloc, mi_malloc, tc_malloc, moz_arena_malloc,
// scalable_malloc) are entered where they can allocate and free; the usual names, where they are
// not exported, if they are malloc, free and one more. A function that is only a jump to another
// one is followed, as other functions may know that one; several names of one address are one
// function. What cannot be moved is left as it is, and reported.
//
// What is not exported and goes through the same table of functions as malloc is entered with it
// (enter_table_linux.h).
//
// The C library's malloc is found by name, so we come before it; what asks that library itself for
// it finds a jump at its beginning, too (../../docs/notes/0031-who-asks-libc-itself.md).
//
// In a program that is linked statically (static_linux.h) all is entered by the symbol table. What
// its C library's malloc calls itself comes from functions whose places are known.
//
// A library that is loaded later is looked at when the linker has relocated it, before its code
// runs; when it goes, so do its trampolines.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// Patch what can be patched, and tell what cannot. Called once per image, before any other thread
// exists.
HIDDEN void enter_start(void);

// The linker has protected what it has relocated: is there something new? It holds its lock.
HIDDEN void enter_loaded(void);

// The program ends by itself: what its libraries were bound to at last is looked at.
HIDDEN void enter_end(void);

// The linker is about to unmap this.
HIDDEN void enter_unloaded(uintptr_t start, uintptr_t bytes);

// A static program: make its function of that name lead to `hook`, and `*real` (may be NULL) to be
// what it was. False: there is none, or it cannot be.
HIDDEN bool enter_function(const char *name, void *hook, void **real_one);

// Whether that program's operators new and delete were left as they are: they call its malloc.
HIDDEN bool enter_skips_operators(void);

// How many functions were entered.
HIDDEN uint32_t enter_functions(void);
