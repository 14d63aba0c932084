// rewrite: traces written anew as one: put side by side, and without what should not be passed on.
//
// Definitions keep their order, those of a trace after those of the one before; items are in the
// order of time, and at one time in that of the traces. The order within each trace stays, so all
// that is true of one trace stays true of its processes.
#ifndef TRACE_REWRITE_H
#define TRACE_REWRITE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rewrite_input {
	const char *path;
	int64_t offset_ns; // its clock is moved by so much
};

struct rewrite_options {
	const struct rewrite_input *inputs;
	size_t inputs_count;
	bool by_wall_clock; // traces begin as far apart as their recordings did; else together
	bool arguments;     // without command lines and what they said
	bool paths;         // files by their names alone, no folder, no host
	bool (*stopped)(void *context); // may be NULL
	void *context;
};

struct rewrite_result {
	uint64_t events;
	bool no_clock; // a trace does not say when it began: it begins with the first one
	bool damaged;  // one is cut or damaged: what is whole of it is there
};

// Write to the descriptor, which stays the caller's.
bool rewrite_traces(const struct rewrite_options *options, int fd, struct rewrite_result *result,
		    struct err *err);

#endif
