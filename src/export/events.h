// events: the blocks that the filters select, as they begin and end in the window, one by one: what
// the formats of events are written from.
//
// A block is one of malloc's heap or of another (lives.h); the calls on virtual memory are
// not among them. Without a filter there are also ends of blocks that nobody saw begin.
#pragma once

#include "engine/replay/lives.h"
#include "export/export.h"

struct events_watcher {
	// The window begins, and this lives. NULL: that is not wanted.
	void (*before)(void *context, const struct lives_block *block);
	// It begins within the window. NULL: the same.
	void (*begin)(void *context, const struct lives_block *block);
	// It ends within the window. `whole_lives`: it lived in some part of the window, whenever
	// it ended; LIVES_RUNNING, if it did not.
	void (*end)(void *context, const struct lives_block *block, const struct lives_end *end);
	// Every note within the window. NULL: the same.
	void (*note)(void *context, const struct trace_note *note);
	void *context;
	bool whole_lives;
	bool origins;       // `old_address` of blocks is looked at
	process_id process; // of which alone; TRACE_NONE: all
};

// Before anything is written: find what the filters select. ERR_USAGE: the question is not about
// blocks of heaps.
bool events_prepare(struct query_context *asked, struct err *err);

// Read the trace; where there is an index, of what was before the window only what still lives when
// it begins. Live blocks that take more than half of the memory (window_options) are followed by
// way of temporary files: the watcher is given the same in the same order. A damaged tail is known
// afterwards. False: a temporary file could not be written, or read; then what was given is not
// all.
bool events_read(const struct export_source *source, const struct events_watcher *watcher,
		 struct err *err);

// The only process, or the only one that the filters leave, for formats that hold one. ERR_USAGE
// if it is not one; `what` begins the sentence: "a heaplog".
bool events_choose(const struct export_source *source, const char *what, process_id *process,
		   struct err *err);

// Of the window: what the class of a whole life is.
enum query_type events_class(const struct export_source *source, const struct lives_block *block,
			     const struct lives_end *end);
