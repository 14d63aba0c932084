// index_work: a build of an index that is under way, and how it goes on after it was stopped.
//
// Now and then a build writes down where it is (`state`): the place in the trace, the sizes of all
// files, and what it has in memory. All files are append-only, so a build that was killed goes on
// from there: what was appended later is cut off. The state belongs to the beginning of a trace,
// not to all of it: the trace may have grown since. Blocks that do not fit into memory
// (index_pair.h) are in files without a name; from then on no state is written, and a build that
// is killed goes on from before.
//
// A realloc in two halves that failed changes nothing, but its first half is met first. Such calls
// are rare: the build ends the block, and where the second half says that it did not end, begins
// again with the numbers of all such halves (lives_find_undone).
//
// The calls on virtual memory that the index has (`calls`) are added again: they are few.
#pragma once

#include "engine/index/index.h"
#include "engine/index/index_ahead.h"
#include "engine/index/index_pair.h"
#include "engine/space/vm_lives.h"

// The first half of a realloc whose second half may still come.
struct index_half_call {
	uint64_t address;
	uint64_t state;
	uint64_t step; // raw
};

struct index_work {
	struct index index; // what head will say; files are open for writing
	struct index_store store;
	struct index_feed feed;
	struct index_ahead ahead;
	struct index_pair pair;
	struct vm_lives vm;
	struct reader *reader;
	const char *trace_path;
	const struct index_wish *wish;
	uint32_t *space_of; // malloc's, by process; SPACE_NONE: not yet
	struct index_half_call *halves;
	struct map
		undone; // numbers of first halves that change nothing, where they were looked for
	bool knows_undone; // they were, in this build
	bool missed;       // there is one that is not among them
	uint32_t processes_count, threads_count;
	struct progress progress;
	size_t destroys_capacity, undone_capacity;
	bool whole;      // nothing will be added to the trace
	uint64_t due_ns; // when it is to be
};

// Write the state; nothing happens where there can be none. Failures are no harm but that the old
// one stays.
void index_work_save(struct index_work *work);

// Go on from a state: fills in what a new build would begin with, and moves the reader. False,
// ERR_FORMAT: there is none that can be used, begin again (what was taken is to be closed).
bool index_work_load(struct index_work *work, struct err *err);
