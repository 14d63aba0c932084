// runtimes: what to set in the environment, so that the runtimes of languages write down the
// functions of their generated code (collect/code_names.h).
#pragma once

#include "base/str.h"

// A copy of `environment` in which all are asked to: preload_free_environment. What the user has
// set there stays in front of what is added, or as it is where there can be but one value. `line`
// says what was set.
char **runtimes_environment(char *const *environment, struct str *line);
