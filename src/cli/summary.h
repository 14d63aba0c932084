// summary: what a recording says to its user, on stderr: while it runs, at its end, or why it did
// not begin.
#pragma once

#include "launch/launch.h"

// A line while it runs.
void summary_tell(const char *line);

// The two lines at its end.
void summary_print(const struct launch_result *result);

// It did not begin: say why. Returns the exit code.
int summary_failed(const struct launch_result *result, const struct err *err);
