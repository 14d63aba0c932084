// replay_plan: the calls of one process of a trace as records for the driver.
//
// The trace is read first for what must be known before (when a thread makes its last call, when
// the most is live, how long it all is), and then once for each replay, so that memory goes with
// what is live and not with the number of calls. A replay that is only to show what the driver
// costs needs none of that, and is made in the first reading: it has one sample, and no thread of
// it ends.
//
// What a record cannot say is counted: frees of blocks that the process has from its parent, or
// from before the recording, frees of nothing known, and calls that failed.
#pragma once

#include "base/map.h"
#include "base/progress.h"
#include "replay/replay_ring_linux.h"
#include "trace/reader.h"

#include <stdbool.h>

// A moment at which resident memory is measured: after an event, with what is live then by the
// trace, which is what an allocator's memory is held against.
struct replay_plan_sample {
	uint64_t time_ns, number; // after this event
	uint64_t live_bytes, live_count;
};

// A thread of the trace. `number` is only its own while it runs: it goes to another after its last
// call, so the driver needs as many as run at one time.
struct replay_plan_thread {
	uint64_t last;   // number of its last call, + 1; 0: it makes none
	uint16_t number; // that the driver knows it by
	bool running;
};

// What the first reading finds out is in the fields from `calls` on.
struct replay_plan {
	struct reader *reader; // borrowed
	process_id process;
	bool one_thread;
	bool looked_ahead;                  // the first reading is over: what follows is known
	struct replay_plan_thread *threads; // by thread id; owned
	size_t threads_count;
	struct map undone; // first halves of reallocs that failed; found by the first reading
	uint64_t calls;    // that are replayed
	// Of the calls that are not: frees of what is not known, and calls that failed.
	uint64_t unknown_frees, failed;
	// When most bytes were live: how many, in how many blocks, after which event.
	uint64_t peak_bytes, peak_count, peak_number;
	// Of its calls: the time of the first and of the last, in ns of the trace, and one more
	// than the number of the last. Samples are spread over these.
	uint64_t first_ns, last_ns, last_number;
	uint32_t threads_most; // at one time
	// Rising. The first reading has one alone, and all others have the same.
	struct replay_plan_sample samples[REPLAY_RING_SAMPLES];
	uint32_t samples_count;
};

// The calls of `process` of the trace; `one_thread`: all of them are made by one thread, in the
// order of the trace. The reader is borrowed until replay_plan_fini, and moved by each reading.
void replay_plan_init(struct replay_plan *plan, struct reader *reader, process_id process,
		      bool one_thread);
void replay_plan_fini(struct replay_plan *plan); // accepts { 0 }

// Whether the first reading may give records, too: not where threads are so many that those which
// have ended would be in the driver's way.
bool replay_plan_is_simple(const struct replay_plan *plan);

// The first reading, unless it was made. False: the process made no calls, or more threads at one
// time than the driver has.
// ERR_FORMAT: it made no calls. ERR_LIMIT: too many threads at one time.
bool replay_plan_look_ahead(struct replay_plan *plan, struct progress *progress, struct err *err);

// Give all records to `put`, the last of which ends the replay. False: `put` said so.
typedef bool replay_plan_put(void *context, const struct replay_ring_record *record);
// From the beginning, any number of times; as long as the trace takes to read, and as long as `put`
// waits for the driver.
bool replay_plan_read(struct replay_plan *plan, replay_plan_put *put, void *context,
		      struct progress *progress);
