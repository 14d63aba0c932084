// parts: the files of a recording that is rotated (record --rotate).
//
//     app.1.tide     app.2.tide     app.tide
//     the oldest     …              the newest, which grows
//
// Each is a trace of its own, with a recording id that follows from the one before: so who has read
// one finds the next, whatever it is called by then.
#pragma once

#include "base/str.h"
#include "trace/trace.h"

// Whether the trace is one of them, or could be the first.
bool parts_has(const struct trace_info *info);

// Of the part after the one with `id`.
void parts_next_id(const uint8_t id[static 16], uint8_t next[static 16]);

// "app.tide" and 3: append "app.3.tide".
void parts_name(const char *path, uint32_t number, struct str *name);

// Where the file of this id is: at `path`, or beside it as one of its parts. False: it is not
// there.
bool parts_find(const char *path, const uint8_t id[static 16], struct str *found);
