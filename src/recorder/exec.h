// exec: a new image finds the recorder too, whatever environment the program gives it.
#ifndef RECORDER_EXEC_H
#define RECORDER_EXEC_H

#include "wire/compiler.h"

// In place of the execve system call: the same, with LD_PRELOAD and TIDEMARK_SESSION added to the
// environment where they are missing. Says first if the new image cannot be recorded (static,
// setuid). Runs in vfork children and on small stacks.
HIDDEN long exec_call(const char *path, long argv, char *const *envp);

#endif
