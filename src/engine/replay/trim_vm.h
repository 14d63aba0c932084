// trim_vm: which calls on virtual memory from before a moment make the address spaces what they are
// at that moment. All others, of which there may be any number, need not be kept.
//
// A call that maps is needed as long as a page of it is what that call made it. It is found by
// going backwards: what a later call maps again or unmaps is over, and a call whose pages are all
// over is not needed. A call that unmaps is needed if, going forwards, it hits what a needed call
// has mapped. For example
//
//     1  mmap    A, 8 pages        needed: pages 0 to 3 are still what 1 made them
//     2  munmap  A + 4, 4 pages    needed: else 1 would have them still
//     3  mmap    B, 8 pages        not needed: over by 5
//     4  mprotect B                not needed
//     5  munmap  B, 8 pages        not needed: nothing that is needed has mapped it
//
// A change of protection is needed if a page has it still, or is committed since then. What a
// process had mapped when a child that still lives was forked is the child's, so all that is
// before is kept. Advice and locks change nothing that is asked of a moment, and go.
//
// Memory: 48 bytes for each call; O(log n) each, but for the ranges that are over.
#pragma once

#include "trace/reader.h"

struct trim_vm;

// The definitions are the reader's, which has been scanned.
struct trim_vm *trim_vm_new(const struct reader *reader);
void trim_vm_free(struct trim_vm *trim);

// Every item before the moment, in the trace's order.
void trim_vm_add_event(struct trim_vm *trim, const struct trace_event *event);
void trim_vm_add_note(struct trim_vm *trim, const struct trace_note *note);

// Give the numbers of those that are needed, rising.
void trim_vm_each(struct trim_vm *trim, void (*give)(void *context, uint64_t number),
		  void *context);
