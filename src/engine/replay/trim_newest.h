// trim_newest: the newest part of a trace that is being written, as a file to go on with.
//
//     trim_newest_write     beside the trace, under another name
//       trim_newest_place     in the trace's stead, which may get a name of its own
//       trim_newest_take      what to write it with from here on
//     trim_newest_close
//
// It begins with a block of events: the last one that is old enough, or the first one of which what
// follows is small enough. What lived there is in it (trim.h).
#pragma once

#include "base/err.h"
#include "trace/fresh.h"

struct writer;

struct trim_newest_options {
	const char *path;
	uint64_t file_bytes; // its size
	bool last; // begin with the last block, as another part of the recording (parts.h); else
	uint64_t old_ns;     // one that begins by then is old enough; 0: none is by its age
	uint64_t most_bytes; // what follows is to be at most so large; 0: as large as it is
	// Asked at the present end of the trace whether to read on (trace/rewrite.h), and now and
	// then whether to leave off.
	bool (*more)(void *context);
	bool (*stopped)(void *context);
	void *context;
};

struct trim_newest {
	struct fresh fresh;
	struct writer *writer;
	uint64_t from_ns; // where it begins
};

// False: `err` says why, or has no error, and there is nothing to leave out.
bool trim_newest_write(struct trim_newest *newest, const struct trim_newest_options *options,
		       struct err *err);

// It has the trace's name then. Unless `parts` is NULL the old file gets the next name of a part
// that is not taken; *parts: the number of the last one.
bool trim_newest_place(struct trim_newest *newest, uint32_t *parts, struct err *err);

// The caller's. Its descriptor is ours, and open until trim_newest_close.
struct writer *trim_newest_take(struct trim_newest *newest);

// Without trim_newest_place before: nothing is left of it.
void trim_newest_close(struct trim_newest *newest);
