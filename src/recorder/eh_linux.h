// eh_linux: the .eh_frame of an object whose linker left out .eh_frame_hdr, as musl-gcc's does.
//
// The program headers do not say where such an .eh_frame is; the file's section table does, which
// is not in memory. So the file is read once, when the object's code is first met on a stack, by
// system calls of ours: not in a sealed process, and not where the file is gone or is another one
// by now. What it says is believed only if the object's memory holds what the file does.
#pragma once

#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct scope_object;

// The header for the object that is at [start, end), as cfi_compile takes it, and the bytes of
// its pages. NULL: it has no .eh_frame that can be found. The caller holds code_lock.
HIDDEN uint8_t *eh_make_header(const struct scope_object *object, uintptr_t start, uintptr_t end,
			       size_t *pages);
