// cfi: what .eh_frame says about one code address, as a rule (unwind.h).
//
// System V ABI x86-64 and i386; LSB 5.0, "Exception Frames"; DWARF 5, section 6.4. The tables are
// the loaded object's own and are trusted as the program's own unwinder trusts them.
#pragma once

#include "recorder/unwind.h"

// What the object whose .eh_frame_hdr is `header` says about `pc`, at which the instruction pointer
// reads `exact_pc` (one more, for a return address). The frame id of the result is 0. UNWIND_NONE
// if no entry covers pc; then `*starts_at_exact_pc` says whether one begins at exact_pc.
// Uses static memory: one caller at a time.
HIDDEN unwind_rule cfi_compile(const uint8_t *header, uintptr_t pc, uintptr_t exact_pc,
			       bool *starts_at_exact_pc);

// Where what it says about `pc` begins and ends: a function, or a part of one. False: it says
// nothing.
HIDDEN bool cfi_extent(const uint8_t *header, uintptr_t pc, uintptr_t *start, uintptr_t *end);

// The header that an image of Windows lacks, or an object whose linker left it out, where .eh_frame
// itself is there: written to `header`, for the `bytes` of .eh_frame at `frames`, as far as they
// are about code in [code, code_end). Its table is of addresses. Returns how many bytes it takes;
// with `header` NULL it only says that. 0: there is nothing.
HIDDEN size_t cfi_index(const uint8_t *frames, size_t bytes, uintptr_t code, uintptr_t code_end,
			uint8_t *header);
