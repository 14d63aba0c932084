// watch_win32: images whose every start is recorded.
//
// The documented way to come between is the image's key under "Image File Execution Options": its
// value "Debugger" is a command that is started instead, with the program's own command line after
// it. Ours is
//
//     "…\tidemark.exe" watched "PATTERN"
//
// which records the program as `record` does. The key is there for programs of both sizes. What
// is there of others is left alone.
#pragma once

#include "base/err.h"

#include <stdbool.h>

// Record every later start of image `name` (a file name, without folders) into `pattern`
// (pattern.h; NULL: the default name, in the current directory). ERR_USAGE where it is no name,
// ERR_IO where another has it for its own, or without the right to.
bool watch_on(const char *name, const char *pattern, struct err *err);

// No longer. ERR_USAGE: it was not watched.
bool watch_off(const char *name, struct err *err);

// All that are, with their patterns.
void watch_list(void (*show)(void *context, const char *name, const char *pattern), void *context);
