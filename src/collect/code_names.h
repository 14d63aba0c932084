// code_names: names of generated code, by what runtimes write for perf.
//
// A frame of generated code (a JIT's) is in no file that could name it. Runtimes that are asked to
// write lists of their functions: a perf map, /tmp/perf-PID.map, of lines "address size name", in
// hexadecimal; or a jitdump, of records with times. What is looked for is known beforehand: the
// addresses of frames that were recorded. So a list is read once, and nothing of it is kept but
// what names one of them.
//
// An address may belong to one function after another. Of a perf map, which has no times, the last
// line counts. Of a jitdump the function counts that was there when the frame was first seen. In
// both cases code_wanted.several says that there were others.
//
// Lists are written by programs, and are not to be trusted: lines and records that make no sense
// are stepped over, and the work is bounded.
#pragma once

#include "trace/trace.h"

#include <stddef.h>

enum {
	CODE_NAMES_LIST_BYTES = 64 << 20,    // of a list, that are read
	CODE_NAMES_FUNCTION_BYTES = 1 << 30, // a larger function is nonsense
	CODE_NAMES_LENGTH = 1000,            // of a name, that are kept
	CODE_NAMES_WORK = 1 << 24,           // frames that may be given a name, again and again
};

// An address whose function is looked for.
struct code_wanted {
	uint64_t pc;
	uint64_t seen_ns; // when a stack with it was first seen, of CLOCK_MONOTONIC
	frame_id frame;
	uint32_t length;  // of `name`; 0: none was found
	const char *name; // in the list
	const char *file; // of a jitdump; NUL-terminated; NULL: not known
	uint32_t line;    // the same
	uint64_t told_ns; // of a jitdump: since when
	bool several;     // the list has other names for it
};

// Look for `count` addresses, which are sorted here, in a list. False: it was too much work, and
// the rest of the list was not used.
bool code_names_find_in_map(struct code_wanted *wanted, size_t count, const char *text,
			    size_t length);
bool code_names_find_in_dump(struct code_wanted *wanted, size_t count, const uint8_t *bytes,
			     size_t length);

// What was found as function, file and line: runtimes write some of them into one text. `name`'s
// texts are the caller's, to be freed.
void code_names_split(const struct code_wanted *wanted, struct trace_name *name);
