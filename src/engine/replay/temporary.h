// temporary: the blocks that the thread which allocated them freed before its next allocation.
//
// The same that heap.h counts as temporary, for who wants nothing else: of each thread only its
// latest block is kept, so it takes memory by threads, not by what lives, nor by stacks. Of a
// sampled recording nothing is known.
//
//     temporary_new
//       temporary_add_process, _add_thread    before the events that use them; ids count from 0
//       temporary_add_event, _add_note        in the trace's order
//     temporary_free
//
// or all of that at once by temporary_read. One thread.
#pragma once

#include "base/progress.h"
#include "engine/query.h"
#include "trace/reader.h"

// Called for each: whose it was and how large. `undone`: it was reported before, and is none, since
// the realloc that ended it failed.
struct temporary_visitor {
	void *context;
	void (*visit)(void *context, process_id process, stack_id stack, uint64_t size,
		      bool undone);
};

struct temporary;

// `query` (NULL: everything) and `visitor` are borrowed until temporary_free.
struct temporary *temporary_new(const struct query *query, const struct temporary_visitor *visitor);
void temporary_free(struct temporary *temporary); // NULL is allowed

// What happens next in the trace.
void temporary_add_process(struct temporary *temporary);
void temporary_add_thread(struct temporary *temporary, process_id process);
void temporary_add_event(struct temporary *temporary, const struct trace_event *event);
void temporary_add_note(struct temporary *temporary, const struct trace_note *note);

// All of a trace, from the reader's present position to its end.
void temporary_read(struct reader *reader, const struct query *query,
		    const struct temporary_visitor *visitor, struct progress *progress);
