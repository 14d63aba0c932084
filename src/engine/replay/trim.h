// trim: what of a trace says all of a window: which events from before it must be kept, so that at
// its beginning the same blocks live as in the whole trace.
//
// These are the calls that began the blocks that live there, the first halves of reallocs whose
// second halves come later, and the calls on virtual memory that the state of the address spaces
// is made of (trim_vm.h). The pass ends where the window begins.
#pragma once

#include "base/progress.h"
#include "engine/moment.h"

struct trim {
	uint64_t *numbers; // of the kept calls, rising; owned
	size_t count, capacity;
	uint64_t from_number; // the window's first event
};

// Reads the trace up to `from`, and rewinds the reader, which has been scanned.
void trim_find(struct reader *reader, const struct moment_edge *from, struct progress *progress,
	       struct trim *trim);
void trim_fini(struct trim *trim);
