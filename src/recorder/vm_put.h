// vm_put: one record of a call on virtual memory (struct lane_vm) into a lane that was entered.
#pragma once

#include "recorder/lane.h"

// What a record says of its call's stack.
enum vm_put_stack {
	VM_PUT_NONE,    // nothing
	VM_PUT_SAME,    // it is the lane's last one
	VM_PUT_DIFFERS, // it has just been taken, and differs from that
};

// Asked when the record has its place in the order, before it is written: it may still change it.
// `context` is vm_put's.
typedef enum vm_put_stack vm_put_last(struct lane *lane, struct lane_vm *record,
				      const void *context);

// Wait until a call's records fit, BEGIN and END together; Python's frames are written first, as
// they belong to the record that follows. Not after a call that has unmapped something: it may have
// been the interpreter's innermost frame (of a generator that it makes, Python 3.11 and later).
// False: there never will be room.
HIDDEN bool vm_put_first(struct lane *lane);

// The same of a record without a stack.
HIDDEN bool vm_put_room(struct lane *lane);

// Write and publish. `last` may be NULL: no stack. False: nothing was written. The lane stays busy.
HIDDEN bool vm_put(struct lane *lane, struct lane_vm *record, vm_put_last *last,
		   const void *context);
