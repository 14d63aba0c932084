// hook_python: the heaps of CPython, `pymem` and `pyobject`, by PyMem_SetAllocator.
//
// That is how a program is meant to look at them (3.7 and later), so that no layout of the
// interpreter's needs to be known. It is called before any code of the object runs that defines
// it: each block of these heaps is seen from the first one on. What goes to PyMem_RawMalloc is
// malloc's, as it is.
//
// While the interpreter begins, it may choose its allocators again (PYTHONMALLOC, -X dev): ours is
// then put in front again, before an object is allocated, as each of these first does something
// that calls malloc. Who wraps it later (tracemalloc), wraps ours; who replaces it is not seen.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct scope_object;

// Whether interpreters are still beginning, so that hook_python_look is to be called.
HIDDEN extern bool hook_python_begins;

// An object of the process: if it is an interpreter, its allocators are asked to call ours.
HIDDEN void hook_python_meet(const struct scope_object *object);

// malloc is called, from there: is our allocator there still?
HIDDEN void hook_python_look(uintptr_t caller);

// What is there is about to be unmapped.
HIDDEN void hook_python_unloaded(uintptr_t start, uintptr_t bytes);
