// patch: the system-call sites of libc and the dynamic linker.
//
// libc calls the kernel for itself where no symbol can be interposed: posix_spawn and system exec,
// free unmaps, a thread's end unmaps its stack. Each such call is one instruction pair of exactly
// seven bytes, `mov $nr,%eax; syscall`; its first five become a jump to a thunk of ours near by.
//
// Three things are needed from them: a new image must find the recorder even when the program
// gives it an empty environment (execve), calls on virtual memory are recorded (vm.h), and cached
// stacks and code must be forgotten when their memory goes away. syscall() is such a site as well,
// for programs that call the kernel by number. Where code may not be patched, nothing is: the
// recording then sees a child only if the environment is passed on, and no virtual memory.
#ifndef RECORDER_PATCH_H
#define RECORDER_PATCH_H

#include "wire/compiler.h"

// Patch what can be patched. Called once per image, before any other thread exists.
HIDDEN void patch_start(void);

#endif
