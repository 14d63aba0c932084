// own_heap: the heap that the runtime of a language has of its own, which no function of malloc's
// tells of, and how it is seen.
//
// Names of modules are compared without regard to case and to an ending ".exe", so that the rules
// are the same for all systems.
#pragma once

#include "report/ask/names.h"
#include "report/ask/query_context.h"

// "V8's heap as mappings (window --layer vm --by heap)". NULL: the process has none that is known.
const char *own_heap_of(const struct trace_process *process);

// How the functions of a runtime that generates code come into the stacks: "record --jit has its
// functions in the stacks". NULL: they are there, or the recording has been made so, or nothing is
// known that would do.
const char *own_heap_jit(const struct reader *reader, const struct trace_process *process);

// Whose heap it is that a stack maps memory for, by the function of a runtime that asks for it:
// "V8 heap". NULL: nobody's that is known. Of the program's own mappings (SPACE_PROGRAM) only.
const char *own_heap_mapped(struct names *names, const struct trace_process *process,
			    stack_id stack);

// Whose slab the block with that stack is: it is handed out in pieces, and stays when these are
// freed. "GLib's slices" (g_slice_alloc, and so GList, GSList, GHashTable …, before GLib 2.76 and
// unless G_SLICE=always-malloc is set), "Tcl's allocator" (Tcl_Alloc of up to 16 KiB). NULL: none.
const char *own_heap_slabs(struct names *names, stack_id stack);

// The file whose own operators new and delete take the place of the C++ library's in a process;
// NULL: there is none. And whether a stack came by operator new of that file.
const char *own_heap_operators(const struct trace_process *process);
bool own_heap_by_operators(struct names *names, stack_id stack, const char *file);

// What shows more of it: "record it again with …".
const char *own_heap_advice(const char *heap, bool windows);

// Who asked for the memory of a stack of Python: the interpreter for itself, with no line of a
// script among the callers; itself again, to load a module (its code, names and constants); or a
// script. Such memory CPython keeps to its end, and does not free all of it then.
enum own_heap_asker {
	OWN_HEAP_OTHER, // no Python
	OWN_HEAP_INTERPRETER,
	OWN_HEAP_IMPORT,
	OWN_HEAP_SCRIPT,
};
enum own_heap_asker own_heap_asker(const struct reader *reader, stack_id stack);

// Whether the selected processes have a language with heaps of its own (Python: by the name of a
// module), and whether what it gives out of them is in the trace.
enum own_heap_language {
	OWN_HEAP_NO_LANGUAGE,
	OWN_HEAP_NOT_RECORDED, // its small objects are in no figure
	OWN_HEAP_RECORDED,
};
enum own_heap_language own_heap_languages(const struct query_context *asked);
