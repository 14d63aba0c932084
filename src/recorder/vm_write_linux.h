// vm_write: calls on virtual memory on their way into a lane: whose they are, and what the recorder
// has mapped for itself.
//
//     vm_write_enter      a lane for one call
//       vm_put_room       before each further record (vm_put.h)
//       vm_write_put      one record, or several
//     vm_write_leave
//
// Nothing here calls libc (vm.h).
#pragma once

#include "recorder/lane.h"
#include "recorder/vm.h"

// A lane that was entered for one call.
struct vm_write_door {
	struct lane *lane; // NULL: nothing is recorded
	bool between;      // the lane is between the halves of a realloc of this very thread
};

// Find out where libc and the linker are, by whose code calls are distinguished.
HIDDEN void vm_write_start(void);

// Whether the code at `pc` is the dynamic linker's (where that is a file of its own).
HIDDEN bool vm_write_is_linker(uintptr_t pc);

HIDDEN struct vm_write_door vm_write_enter(void);
HIDDEN void vm_write_leave(struct vm_write_door *door); // for the second time: nothing

// One record, published. With `ask`, with the stack of that call, which says whose it is.
HIDDEN bool vm_write_put(struct lane *lane, struct lane_vm *record, const struct vm_ask *ask);

// Tell what the recorder has mapped and did not tell yet: as LANE_VM_OWN before the baseline, then
// as LANE_VM_MAPPED. One thread at a time: the others leave it to that one.
HIDDEN void vm_write_own(struct lane *lane, uint8_t kind);
