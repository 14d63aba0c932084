// tool: another program of the system, run to its end.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum tool_result {
	TOOL_DONE,    // it ended with 0
	TOOL_FAILED,  // it ended otherwise, or could not be run: *err says how
	TOOL_MISSING, // there is no such program on the PATH
};

// Whether there is a program of this name on the PATH: to tell that it is missing before the work
// that it is needed for.
bool tool_find(const char *name);

// Run `arguments` (NULL-terminated; the first is the program's name, looked for on the PATH) with
// nothing to read. What it writes to stderr is appended to `said`; what to stdout, is lost.
enum tool_result tool_run(const char *const *arguments, struct str *said, struct err *err);

// Open a file with what the user has for its kind, and do not wait for it. `tool_opens`: there is a
// screen to open it on.
bool tool_opens(void);
bool tool_open(const char *path, struct err *err);

// A new empty directory in $TMPDIR (or /tmp), which only we may use. Its path is put into `path`,
// which stays as it is until the directory, empty again, is left. Where a signal ends us before, it
// is removed as quit_removes does.
bool tool_folder(struct str *path, struct err *err);
void tool_folder_leave(struct str *path); // one without a path is none

// Where another library that was preloaded into us has taken malloc over, start this program again
// without what is preloaded: such a library does not expect our forks, and may hold its locks or
// take our descriptors for its own. LD_PRELOAD in our environment stays what it was.
void tool_leave_preloaded(char **argv);

// Our own process id.
uint32_t tool_own_pid(void);

// The most resident memory that we ever had, bytes.
uint64_t tool_own_resident_max(void);

// The words that we were started with, as UTF-8; `argv` where they are that already.
char **tool_arguments(int *argc, char **argv);
