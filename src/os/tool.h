// tool: another program of the system, run to its end.
#ifndef OS_TOOL_H
#define OS_TOOL_H

#include "base/err.h"
#include "base/str.h"

enum tool_result {
	TOOL_DONE,    // it ended with 0
	TOOL_FAILED,  // it ended otherwise, or could not be run: *err says how
	TOOL_MISSING, // there is no such program on the PATH
};

// Run `arguments` (NULL-terminated; the first is the program's name, looked for on the PATH) with
// nothing to read. What it writes to stderr is appended to `said`; what to stdout, is lost.
enum tool_result tool_run(const char *const *arguments, struct str *said, struct err *err);

// A new empty directory in $TMPDIR (or /tmp), which only we may use; its path is appended.
bool tool_folder(struct str *path, struct err *err);

#endif
