// hook_wait: the functions by which a program waits for its children, under the C library's names.
#pragma once

#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

// Each is the C library's, which is called; then the end of the child is noted (client_waited).
int wait(int *status);
int wait3(int *status, int options, void *usage);
int wait4(int pid, int *status, int options, void *usage);
int waitid(int type, unsigned id, void *information, int options);
int waitpid(int pid, int *status, int options);
