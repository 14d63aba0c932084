// whole: what a trace adds up to from its first event to its last, kept once it was counted.
//
//     whole_read      from what an earlier question kept, or by a pass over all events
//     whole_fini
//
// A pass takes some 50 ns of processor time an event; its result is of the size of the stacks. So
// what was counted of everything, with no filter, is written beside the trace's index (`whole` in
// its folder, which is made for it where a pass is long), and the next who asks takes it from
// there.
// It is a cache as the index is: of another trace, version or layout, or damaged, it is not used.
// Only a trace that is whole and sound has it; of others each question reads what there is.
//
// The pass is the truth, and what is kept is the very figures of it: nothing is counted in another
// way.
#pragma once

#include "engine/replay/heap.h"
#include "engine/replay/pool_totals.h"
#include "engine/space/space.h"
#include "engine/window.h"

struct whole {
	struct heap *heap;         // finished
	struct space_totals vm;    // of the selected processes together
	struct pool_totals *pools; // of all
	bool kept;                 // no event was read
};

struct whole_wish {
	const char *trace_path;
	const struct query *query;           // NULL: everything. Borrowed until whole_fini
	const struct window_options *window; // where the index is, and whether one is wanted
	// Sees each note of the trace, in their order (NULL: nobody). Where no event is read, the
	// time of one may be earlier than that of the event before it.
	void (*on_note)(void *context, const struct trace_note *note);
	void *context;
};

// Of all of the trace; `reader`, which was scanned, is moved: at its end then. It may have been
// stopped (reader_stop): then of what was read so far.
void whole_read(struct whole *whole, struct reader *reader, const struct whole_wish *wish);
void whole_fini(struct whole *whole); // accepts { 0 }
