// patch_program: the system-call sites of the program's own code.
//
// Runtimes, allocators and sandboxes make calls on virtual memory without libc. Where such a call
// is in the executable, or in a library that is loaded from the start, it is led to a thunk as
// libc's are (patch_linux.h): if the function around it can be decoded, nothing jumps into the
// bytes that the jump needs, and they are instructions that may be elsewhere. What remains is seen
// with --strict-vm alone: code of libraries that come later, code made at run time, assembly
// without unwind tables (but for `mov $nr,%eax; syscall`), objects of more than 4 MiB of code.
#ifndef RECORDER_PATCH_PROGRAM_LINUX_H
#define RECORDER_PATCH_PROGRAM_LINUX_H

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PATCH_SYSCALL_BYTES = 2,
	PATCH_SITE_BYTES = 7, // a jump, and the `syscall` itself, which stays
	PATCH_SITE_BYTES_MAX = 32,
};
#define PATCH_ANY UINT32_MAX // a site whose number comes in rax

// Part of patch_start.
HIDDEN void patch_program(void);

// Lead the instructions in [site, site + length), of which the last is `syscall`, to a new thunk,
// by which the call `number` is made. False: it may not be, or cannot.
HIDDEN bool patch_put_site(uint8_t *site, uint32_t length, uint32_t number);

// Whether the call is for us.
HIDDEN bool patch_wanted(uint32_t number);

#endif
