// parts: the files of a recording that is rotated (record --rotate).
//
//     app.1.tide     app.2.tide     app.tide
//     the oldest     …              the newest, which grows
//
// Each is a trace of its own, with a recording id that follows from the one before: so who has read
// one finds the next, whatever it is called by then.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "trace/trace.h"

struct reader;

// Whether the trace is one of them, or could be the first.
bool parts_has(const struct trace_info *info);

// Of the part after the one with `id`.
void parts_next_id(const uint8_t id[static 16], uint8_t next[static 16]);

// "app.tide" and 3: append "app.3.tide".
void parts_name(const char *path, uint32_t number, struct str *name);

// Where the file of this id is: at `path`, or beside it as one of its parts. False: it is not
// there.
bool parts_find(const char *path, const uint8_t id[static 16], struct str *found);

// Whether the file that goes on where the one at `path` ends is beside it.
bool parts_go_on(const struct reader *reader, const char *path);

// Whether both are files of one recording. Readers have been scanned.
bool parts_same(const struct reader *reader, const struct reader *other);

// When what is its own begins: at 0 in the first, at the mark of `trimmed=N` in others. Is it that
// note?
uint64_t parts_begin_ns(const struct reader *reader);
bool parts_begins(const struct trace_note *note);

// Whether the second goes on where the first ends; *to: the event of the first that is its first
// own. False: `err` says which time is missing between them, or why that cannot be known.
bool parts_follows(const struct reader *first, const char *first_path, const struct reader *second,
		   const char *second_path, uint64_t *to, struct err *err);
