// own_heap: the heap that the runtime of a language has of its own, which no function of malloc's
// tells of, and how it is seen.
//
// Names of modules are compared without regard to case and to an ending ".exe", so that the rules
// are the same for all systems.
#pragma once

#include "report/ask/names.h"

// "V8's heap as mappings (window --layer vm --by heap)". NULL: the process has none that is known.
const char *own_heap_of(const struct trace_process *process);

// Whose heap it is that a stack maps memory for, by the function of a runtime that asks for it:
// "V8 heap". NULL: nobody's that is known. Of the program's own mappings (SPACE_PROGRAM) only.
const char *own_heap_mapped(struct names *names, const struct trace_process *process,
			    stack_id stack);

// Whether the block with that stack is a slab of GLib's slices: it is handed out in pieces by
// g_slice_alloc (and so by GList, GSList, GHashTable …, before GLib 2.76 and unless
// G_SLICE=always-malloc is set), and stays when these are freed.
bool own_heap_is_slab(struct names *names, stack_id stack);

// What shows more of it: "record it again with …".
const char *own_heap_advice(const char *heap, bool windows);
