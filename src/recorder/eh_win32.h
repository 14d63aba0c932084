// eh_win32: the .eh_frame of an image, which mingw's compilers write.
//
// In 32 bits it is how their exceptions find a way out, and covers nearly all code. The image has
// the entries alone; the sorted table that finds one by its address (.eh_frame_hdr elsewhere) is
// made here when the module's code is first met on a stack, in pages of ours.
#pragma once

#include "wire/compiler.h"

#include <stddef.h>
#include <stdint.h>

// The header for the image at `base`, as cfi_compile takes it, and the bytes of its pages. NULL: it
// has no .eh_frame. The caller holds code_lock.
HIDDEN uint8_t *eh_make_header(const uint8_t *base, uint32_t bytes, size_t *pages);
