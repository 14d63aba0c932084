// allocators: which allocators the process uses, and how their calls are seen, for `info`.
//
// One that the dynamic linker's rules lead to is seen by name, since our functions come before it;
// one that calls itself, by patched entries (enter_linux.h). What it is, is recognised by functions
// that only it has. A forked child has its parent's.
#pragma once

#include "recorder/scope_linux.h"

#include <stdbool.h>
#include <stdint.h>

// There is one in this object, seen so (enum note_seen). `name` NULL: by what the object exports.
// Each is reported once; those beyond a few dozen are not. Signals are blocked.
HIDDEN void allocators_add(const struct scope_object *object, uint32_t seen, const char *name);

// Whether an object of which no function is known could have an allocator: it asks others for no
// malloc, and is more than a launcher, which calls a library (java's) and asks for no memory.
HIDDEN bool allocators_may_hide(const struct scope_object *object);

// The one behind our hooks of malloc, unless it is entered and was added so.
HIDDEN void allocators_add_real(void);

// Files with operators new and delete of their own, which are not those of the C++ library.
HIDDEN void allocators_add_operators(void);

// A forked child says it again.
HIDDEN void allocators_tell(void);
