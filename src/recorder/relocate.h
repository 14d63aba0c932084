// relocate: the first instructions of a function, moved elsewhere, so that a jump can be there.
//
// Instructions are copied one by one until at least the bytes that the jump needs are free. What
// depends on its place is rewritten: displacements from the instruction pointer, calls and jumps.
// Refused, with the reason: what cannot be decoded, what jumps into the bytes that are taken away,
// what would not reach, a call that asks for its own address.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RELOCATE_BYTES_MAX = 128, // that relocate_copy writes at most, the jump back included
	RELOCATE_JUMP_BYTES = 5,  // of a jump within 2 GiB
	RELOCATE_FAR_BYTES = 14,  // of a jump to anywhere, of 64 bits
};

enum relocate_reason {
	RELOCATE_DONE = 0,    // it is moved
	RELOCATE_UNKNOWN = 1, // an instruction that cannot be decoded
	RELOCATE_BRANCH = 2,  // a branch that cannot be moved, or goes into what is taken away
	RELOCATE_REACH = 3,   // an operand would be out of reach
	RELOCATE_SHORT = 4,   // the function ends before
};

struct relocate {
	uint32_t taken;      // bytes of the function that are free now
	uint32_t written;    // bytes at `to`
	bool begins_in_jump; // somebody else's jump stood there
};

enum relocate_how {
	RELOCATE_WIDE = 1, // 64-bit mode
	// A call that is moved returns to after where it was, and not to its copy: whoever walks or
	// unwinds the stack finds the function itself. (A processor that keeps return addresses
	// twice would refuse such a return.)
	RELOCATE_WALKED = 2,
};

// Copy instructions from `code`, of which `size` bytes can be read, to `to`, where they are to run,
// until at least `need` bytes are taken; a jump to what follows them comes after. `code_at` and
// `to_at` are where both are for the processor; `how` is of enum relocate_how.
HIDDEN enum relocate_reason relocate_copy(const uint8_t *code, size_t size, uint64_t code_at,
					  uint8_t *to, uint64_t to_at, size_t need, unsigned how,
					  struct relocate *relocate);

// What is the matter with a function, as an end of a sentence that begins with its name.
HIDDEN const char *relocate_why(enum relocate_reason reason);

// A jump from `at` to `target`, within 2 GiB. Returns how many bytes were written to `out`; 0: it
// does not reach.
HIDDEN size_t relocate_jump(uint8_t *out, uint64_t at, uint64_t target, bool wide);

// A jump from anywhere to anywhere, of 64-bit mode. Returns how many bytes were written.
HIDDEN size_t relocate_jump_far(uint8_t *out, uint64_t target);
