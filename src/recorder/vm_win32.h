// vm_win32: calls on virtual memory, recorded in the hooks of the functions that enter the kernel.
//
// They become the same records as on other systems (wire/lane_event.h): what reserves is a mapping
// without access, what commits gives access, what decommits takes it, what releases unmaps. The
// bits of MEM_… are in the record's flags as the program gave them. A call that takes memory is
// recorded after it, one that gives memory back on both sides.
#pragma once

#include "recorder/vm.h"

// The heap is about to be destroyed, with all its blocks.
HIDDEN void vm_heap_gone(const void *heap, const uintptr_t *frame);

// Tell of hooks that the program has removed.
HIDDEN void vm_check_code(void);
