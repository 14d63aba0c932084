// own_heap: the heap that the runtime of a language has of its own, which no function of malloc's
// tells of, and how it is seen.
#ifndef REPORT_OWN_HEAP_H
#define REPORT_OWN_HEAP_H

#include "trace/reader.h"

// "V8's heap as mappings (--layer vm)". NULL: the process has none that is known.
const char *own_heap_of(const struct trace_process *process);

#endif
