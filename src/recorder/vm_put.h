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
typedef enum vm_put_stack vm_put_last(struct lane *lane, struct lane_vm *record,
				      const void *context);

// Room for a call's records. False: there never will be.
HIDDEN bool vm_put_room(struct lane *lane);

// Write and publish. `last` may be NULL: no stack. False: nothing was written.
HIDDEN bool vm_put(struct lane *lane, struct lane_vm *record, vm_put_last *last,
		   const void *context);
