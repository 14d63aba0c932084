// rewrite: traces rewritten as one: put side by side, and without what should not be passed on.
//
// Definitions keep their order, those of a trace after those of the one before; items are in the
// order of time, and at one time in that of the traces. The order within each trace stays, so all
// that is true of one trace stays true of its processes. Where all are files of one rotated
// recording (parts.h), in any order, the new trace is that recording as it would be in one file.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer;

struct rewrite_input {
	const char *path;
	int64_t offset_ns; // its clock is moved by so much
};

// A window of the one input. Of the events before it those of `kept` (numbers, rising) stay; of the
// notes those that say what is, not what happened. A mark is put
// where the window begins.
// `kept` says which earlier events are needed to know what was there when the window began: the
// beginnings of blocks that lived then, and calls on virtual memory.
struct rewrite_window {
	uint64_t from_number, from_ns; // from this event on
	uint64_t to_number, to_ns;     // before this event, and nothing later than that time
	const uint64_t *kept;
	size_t kept_count;
	const char *mark; // its name
};

// What is asked for. All that is a pointer is borrowed until the call returns; false and NULL are
// "as it is".
struct rewrite_options {
	const struct rewrite_input *inputs;
	size_t inputs_count;
	bool by_wall_clock; // traces begin as far apart as their recordings did; else together
	const struct rewrite_window *window; // NULL: all of it
	bool arguments;                      // without command lines and what they said
	bool paths;                          // files by their names alone, no folder, no host
	bool addresses; // blocks are numbered, code is where its file has it, and what is
			// made of addresses is left out: virtual memory, snapshots
	bool part;      // the recording goes on in it as its next part (parts.h)
	bool (*stopped)(void *context); // may be NULL
	// The one input is still being written: asked at its present end whether to look for more.
	// NULL: it is whole.
	bool (*more)(void *context);
	void *context;
};

// `events` are those of the new trace; `vm_left_out` are calls on virtual memory that have nothing
// but addresses to say.
struct rewrite_result {
	uint64_t events;
	uint64_t vm_left_out;
	uint64_t unbundled; // files of code whose symbols are not in the traces
	bool no_clock;      // a trace does not say when it began: it begins with the first one
	bool labels_differ; // in name or value: the new trace's have the values of all
	// Of files of one rotated recording: when the first begins (0: as the recording did), and
	// whether there is one beside the last that goes on.
	uint64_t parts_from_ns;
	bool parts_go_on;
	bool damaged; // one is cut or damaged: what is whole of it is there
};

// Write to the descriptor, which stays the caller's.
bool rewrite_traces(const struct rewrite_options *options, int fd, struct rewrite_result *result,
		    struct err *err);

// Write the one input to the descriptor, and do not end the new trace: whoever writes the input
// goes on with the writer that is returned, which gives every definition the id that it has there.
// What the input's writer has not flushed is not in it. NULL: `err` says why.
struct writer *rewrite_continue(const struct rewrite_options *options, int fd,
				struct rewrite_result *result, struct err *err);
