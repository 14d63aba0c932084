// query: which allocations a question is about.
//
// `struct query q = { 0 };` asks about all of them. Words given more than once for the same thing
// widen it (two processes: either), different things narrow it (a process and a thread: both).
// A selected allocation takes its free with it: whatever ends the block, its end is counted where
// its beginning was.
//
// Ids are known once the trace's definitions are read, so call reader_scan before query_add_*.
#ifndef ENGINE_QUERY_H
#define ENGINE_QUERY_H

#include "base/err.h"
#include "trace/reader.h"

#include <stdbool.h>

struct query {
	bool *processes; // owned, by process id; NULL: every process
	uint32_t processes_count;
	bool *threads; // owned, by thread id; NULL: every thread
	uint32_t threads_count;

	// Whether an allocation with this stack counts (0: it has none). NULL: every stack does.
	// The engine knows no names, so whoever does sets it. The answer must never change.
	bool (*stack)(void *context, stack_id stack);
	void *context; // borrowed
};

void query_fini(struct query *query);

// Add the processes that `word` names: a pid, a position in the list of processes (where no pid
// is that number), the name of an executable, or its whole path. ERR_USAGE if there is none.
bool query_add_process(struct query *query, const struct reader *reader, const char *word,
		       struct err *err);

// Add the threads that `word` names: a tid, or a name. ERR_USAGE if there is none.
bool query_add_thread(struct query *query, const struct reader *reader, const char *word,
		      struct err *err);

// Whether the process, or the thread, is selected.
bool query_has_process(const struct query *query, process_id process);
bool query_has_thread(const struct query *query, thread_id thread);

// Whether it leaves anything out.
bool query_narrows(const struct query *query);

#endif
