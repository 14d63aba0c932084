// running: a process that is being recorded where the name of a trace is expected.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "cli/command.h"
#include "trace/reader.h"

// Append the path of the trace of the process whose number `word` is; else the word itself, which
// is a file's name. ERR_USAGE: no process of this number is recorded.
bool running_trace(const char *word, struct str *path, struct err *err);

// Set a mark in a trace that is being written, as `tidemark ctl PID mark` does. False: nobody
// writes it any more.
bool running_mark(const struct reader *reader, const char *name);

// Wait up to five seconds for who writes the trace to end it. The collector outlives the program by
// some milliseconds, and where it is not waited for (a program that loads the recorder itself, by
// LD_PRELOAD) a question may come first. While the program runs it is not waited for. `reader` has
// the trace's definitions. True: it was waited for, and the trace is to be opened again.
bool running_await(const struct command *command, const char *path, const struct reader *reader);
