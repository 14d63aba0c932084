// command_win32: a list of arguments as the one line that a program on Windows is started with.
#pragma once

#include "base/str.h"

// Add `argv` to `out`, quoted so that the C runtime's rules give the same list again.
void command_quote(struct str *out, char *const *argv);
