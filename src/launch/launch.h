// launch: one recording of one program, from before its first instruction until the trace is
// closed.
//
//     inspect what is asked for; strict: refuse what cannot be recorded
//     fork the program's process, which waits           (starter)
//     create the output, which is named after its pid   (output)
//     start the collector, wait until it listens        (collector's process)
//     let the program go, pass signals on to it, wait for it
//     wait for the processes that it left behind, until asked to stop
//     wait for the collector to close the trace
//     wait for its index, if one was asked for     (indexer)
//
// The program is our child, in our process group and on our terminal: what the terminal sends
// reaches it without us. It has exactly the descriptors, signal mask and dispositions, limits and
// working directory that we were given.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "collect/collect.h"
#include "launch/keep_wishes.h"

// What is to be recorded, and how. All pointers are borrowed until launch_run returns; what is
// named for one system alone is not looked at on the other.
struct launch_options {
	char *const *argv;          // the program and its arguments; NULL: attach_pid
	uint32_t attach_pid;        // a program that runs already
	uint64_t duration_ns;       // Linux: end the recording after so long; 0: with the program
	bool watched;               // Windows: started in its stead (watch_win32.h)
	const char *output_pattern; // as in output.h; NULL: the default name
	bool force;                 // overwrite the output
	bool strict;                // refuse, or fail, where something is not recorded
	bool index;                 // build the window index while recording
	struct keep_wishes keep;    // Linux: how the trace is kept short
	const char *const *follow; // Linux: words of a command that is run on the trace; NULL: none
	bool follow_quiet;
	bool jit;                 // Linux: have runtimes write down the functions of generated code
	uint32_t segment_options; // enum segment_option
	const char *reach_mark;   // Linux: look for reachable blocks at this mark; NULL: at none
	uint64_t sample_bytes;    // mean distance of samples; 0: record every call
	uint32_t overhead_max;    // Linux: sample where that costs more (collect_options); 0: never
	const char *options_text; // what of it all the trace should say
	const char *labels;       // of the run (trace/label.h); NULL: none
	const char *tool;         // "tidemark 0.1.0"

	// Called with each line for the user that does not wait until the end.
	void (*tell)(const char *line);
};

// How far it came; `record`'s exit code follows from it.
enum launch_end {
	LAUNCH_RAN,            // `status` is the program's
	LAUNCH_NOT_FOUND,      // no such program
	LAUNCH_NOT_EXECUTABLE, // it is there but cannot be run
	LAUNCH_FAILED,         // we failed, before it was started
};

struct launch_result {
	enum launch_end end;
	int status;                     // wait status of the program
	bool whole;                     // the trace is complete, and nothing is known to be missing
	bool closed;                    // `summary` is set: the collector closed the trace itself
	struct collect_summary summary; // what was recorded, in figures
	struct str path;                // of the trace; empty if there is none
	struct str stood;               // attached: for how long threads stood still; else empty
	bool indexed;                   // the index is there
	uint64_t index_cpu_ns;          // what it took
};

// Record. The result is valid whatever happens; *err says why when it is not LAUNCH_RAN.
// launch_result_fini frees what it holds. On Linux launch_run blocks signals and waits for
// children: it is for a process that does nothing else.
void launch_run(const struct launch_options *options, struct launch_result *result,
		struct err *err);
void launch_result_fini(struct launch_result *result);
