// dead_stack: what of the stack holds nothing of the program's any more, at its very end.
//
// Frames have gaps that nobody writes to, and there are words of earlier calls. When main has
// returned, all frames that are left are of exit and what it calls: whatever pointers they seem to
// hold are old. A block that only such a word points to is lost all the same.
#pragma once

#include "wire/compiler.h"

#include <stdint.h>

// The address above these frames. `fp` is what the frame pointer of one of ours points to: its
// caller's, and then the return address. 0: the program has called exit itself, or it is not known.
HIDDEN uintptr_t dead_stack_top(const uintptr_t *fp);
