// exec: a new image finds the recorder too, whatever environment the program gives it.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// Is it a call that execs?
HIDDEN bool exec_is_call(uint32_t number);

// In place of the execve or execveat system call with these arguments: the same, with LD_PRELOAD
// and TIDEMARK_SESSION added to the environment where they are missing. Says first what is about to
// be, so that it is known when that never says hello, and whether it cannot be recorded (static,
// setuid). Runs in vfork children and on small stacks.
HIDDEN long exec_call(long number, const long words[6]);
