// strict: system calls that the program makes itself (record --strict-vm).
//
// Code with system-call instructions of its own (Go, runtimes linked into the program, code made at
// run time) passes by libc, so patch_linux.h sees nothing of it. Syscall User Dispatch of the
// kernel (Linux 5.11) sends a thread SIGSYS for each system call that is made outside of libc's
// code; the handler makes the call in the thread's place, and records it if it is one on virtual
// memory. A call that is dispatched so takes a microsecond or two more, libc's own calls nothing.
//
// This is the one place where the recorder takes a signal. The program must not block SIGSYS: it
// is taken out of every set of signals that it hands to the kernel, by libc's sites too. A handler
// for SIGSYS that the program sets is called for those that are not ours.
//
// A thread is dispatched from its start if pthread_create made it. One that the program made by a
// system call of its own is not: its memory calls are seen as far as libc makes them.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__

// Once per image, after patch_start. False: the kernel, or this libc, will not have it.
HIDDEN bool strict_start(void);

// The calling thread is dispatched from here on, if strict_start said that it will be.
HIDDEN void strict_thread(void);

// Is it an address in the function that calls the program's handlers?
HIDDEN bool strict_calls_handler(uintptr_t pc);

// One of libc's calls about signals or threads, by its site (strict_wants). Returns what the kernel
// did.
HIDDEN long strict_call(const long words[6], long number);
HIDDEN bool strict_wants(uint32_t number);

#else

// In an i386 process nothing is dispatched.
static inline void strict_thread(void)
{
}

static inline bool strict_calls_handler(uintptr_t pc)
{
	(void)pc;
	return false;
}

#endif
