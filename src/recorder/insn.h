// insn: how long an instruction of x86 is, and which of its bytes depend on where it is.
//
// Enough to move the first instructions of a function elsewhere (relocate.h), and no more: lengths,
// displacements relative to the instruction pointer, targets of branches. All encodings of both
// modes are distinguished by tables: legacy, VEX, EVEX, XOP. What is not surely an instruction is
// refused, never guessed. Some encodings that a processor would refuse are given a length all the
// same: nobody's code has them.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSN_BYTES_MAX = 15 };

struct insn {
	uint8_t length;
	uint8_t opcode_at;      // the opcode's first byte, after all prefixes
	uint8_t rip_at;         // a 32-bit displacement from the instruction's end; 0: none
	uint8_t relative_at;    // a branch's distance from the instruction's end; 0: no such branch
	uint8_t relative_bytes; // 1, 2 or 4
	bool narrow;            // an operand-size or address-size prefix
};

// Decode the instruction at code[0..size), for 64-bit mode if `wide`, else for 32-bit mode. False:
// it is none that is known, or it does not end within `size`.
HIDDEN bool insn_decode(const uint8_t *code, size_t size, bool wide, struct insn *insn);
