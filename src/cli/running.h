// running: a process that is being recorded where the name of a trace is expected.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "trace/reader.h"

// Append the path of the trace of the process whose number `word` is; else the word itself, which
// is a file's name. ERR_USAGE: no process of this number is recorded.
bool running_trace(const char *word, struct str *path, struct err *err);

// Whether a process of the trace at `path` is being recorded: its recording is not about to end.
bool running_goes_on(const char *path);

// Set a mark in a trace that is being written, as `tidemark ctl PID mark` does. False: nobody
// writes it any more.
bool running_mark(const struct reader *reader, const char *name);
