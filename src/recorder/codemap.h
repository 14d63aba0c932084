// codemap: which code is mapped where, and since when.
//
// Gives frames and modules their numbers and tells the collector what they are. A frame is a code
// address in a module; a module is a file mapped at an address. When a library is unmapped and
// another one mapped at its place, the same address becomes another frame.
//
// All calls are for the slow path (an address never seen before): signals blocked, and the
// recording's code_lock held.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct pdata_function;

// What is at a code address.
struct codemap_place {
	uint32_t module;          // 0: no file
	const uint8_t *eh_header; // the module's .eh_frame_hdr, or NULL
	uintptr_t start, end;
	bool coming; // Linux: no file's yet, but the linker is about to list it
	const struct pdata_function *function; // Windows: the function's entry in .pdata, or NULL
	bool generated; // Windows: no module's, by a table that the program gave (tables_win32.h)
};

// Pages for modules and frames, and the linker's own way from an address to an object, or its list
// where it has none. Nothing is done the second time.
HIDDEN void codemap_start(void);

// Pages for frames: part of codemap_start.
HIDDEN void codemap_start_frames(void);

// The module that pc is in, reported to the collector when it is a new one.
HIDDEN struct codemap_place codemap_find(uintptr_t pc);

// The id of the frame at pc in `module`; 0 when there is no room left.
HIDDEN uint32_t codemap_frame(uintptr_t pc, uint32_t module, uint32_t flags);

// [start, end) is about to be unmapped: if modules are in it, forget them, and say so (true).
HIDDEN bool codemap_unmapped(uintptr_t start, uintptr_t end);

// A library may be closed by calls that are not seen (Linux): before, and after it. The modules
// that the linker no longer lists are forgotten, and if there were any that is said (true).
HIDDEN void codemap_closes(void);
HIDDEN bool codemap_closed(void);

// Code of a file was mapped at [start, end), by the dynamic linker or by somebody else. Whether
// addresses there were looked for before and were no file's: that has to be forgotten.
HIDDEN bool codemap_mapped(uintptr_t start, uintptr_t end, bool by_linker);

// Whether `address` is in an object of the linker's. Then it has to be unmapped with the lock
// held: who looks at addresses that a walk has guessed may be reading the object's tables. Needs no
// lock itself.
HIDDEN bool codemap_is_object(uintptr_t address);

// For the hello of a forked child.
HIDDEN uint32_t codemap_modules_count(void);
HIDDEN uint32_t codemap_frames_count(void);
