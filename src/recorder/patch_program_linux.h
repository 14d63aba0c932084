// patch_program: the system-call sites of the program's own code.
//
// Runtimes, allocators and sandboxes make calls on virtual memory without libc. Where such a call
// is in the executable or in a library, it is led to a thunk as libc's are (patch_linux.h): if the
// function around it can be decoded, nothing jumps into the bytes that the jump needs, and they are
// instructions that may be elsewhere. What remains is seen with --strict-vm alone: code made at run
// time, assembly without unwind tables (but for `mov $nr,%eax; syscall`), objects of more than
// 4 MiB of code, and, in a program that is attached to, libraries that it loads afterwards.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PATCH_SYSCALL_BYTES = 2,
	PATCH_SITE_BYTES = 7, // a jump, and the `syscall` itself, which stays
	PATCH_SITE_BYTES_MAX = 32,
};
#define PATCH_ANY UINT32_MAX // a site whose number comes in rax

struct scope_object;

// Those of a loaded object; `others`: and of all after it in the list.
HIDDEN void patch_program(const struct scope_object *object, bool others);

// Lead the instructions in [site, site + length), of which the last is `syscall`, to a new thunk,
// by which the call `number` is made. False: it may not be, or cannot.
HIDDEN bool patch_put_site(uint8_t *site, uint32_t length, uint32_t number);

// Lead the `syscall` at `site` and what follows it, in a function that ends at `end`, to a new
// thunk. Returns how many bytes were taken; 0: it may not be, or cannot.
HIDDEN uint32_t patch_put_behind(uint8_t *site, const uint8_t *end);

// Whether the call is for us.
HIDDEN bool patch_wanted(uint32_t number);
