// replay_run: a plan played under one allocator, in a process of its own.
//
// The driver is started with the allocator preloaded, and given the records through a file that
// both map (replay_ring_linux.h). What it took is its own measure, from before the first call to
// after the last; what it takes without calls is measured by a run with `dry`, and subtracted by
// who shows it (replay_table.h).
#pragma once

#include "replay/replay_plan.h"

// What is to be run. Strings are borrowed until replay_run_play returns.
struct replay_run_options {
	const char *driver;  // path of the program that makes the calls
	const char *library; // that is preloaded; NULL: the C library's own malloc
	const char *setting; // "NAME=VALUE" for its environment; NULL: none
	enum replay_ring_touch touch;
	bool dry;                       // make no calls: what the driver itself costs
	bool (*stopped)(void *context); // may be NULL
	struct progress *progress;      // of reading the trace; NULL: none
};

// What came out, by the plan's samples. All of it is the driver's own measure.
struct replay_run {
	// Calls that were made, and those of them that returned no memory; then processor time
	// without that of samples, and page faults that needed no disk and that needed one.
	uint64_t events, failed, cpu_ns, minor_faults, major_faults;
	uint64_t interrupted; // calls that were to be timed, and that others came between
	uint64_t took_ns;     // from start to end, with reading the trace
	char library[256];    // that malloc was in
	struct replay_ring_sample samples[REPLAY_RING_SAMPLES];
	struct replay_ring_class classes[REPLAY_RING_CLASSES];
};

// ERR_IO: it could not be run, was not preloaded, or ended before the last call.
// Returns when the driver has ended, or was ended. `run` has `took_ns` in any case, and all else
// only if it went well. ERR_STOPPED: `stopped` said so.
bool replay_run_play(struct replay_plan *plan, const struct replay_run_options *options,
		     struct replay_run *run, struct err *err);
