// vm: calls on virtual memory, recorded where they enter the kernel.
//
// patch.h leads the system-call sites of libc and of the dynamic linker here, so that what they ask
// of the kernel for themselves is seen too. A call that takes memory is recorded after it, one that
// gives memory back (or maps over what may be there) on both sides, as realloc is: so nobody else's
// event on the same pages can come in between. All of them share one order word: see
// docs/notes/0012-virtual-memory.md.
//
// Nothing here calls libc, whatever lock the caller holds: free gives pages back while it holds
// its arena.
#ifndef RECORDER_VM_H
#define RECORDER_VM_H

#include "recorder/lane.h"

// The registers of a system call as a thunk has saved them, and what lies above them on the stack.
struct vm_registers {
	long a, b, c, d, e, f; // rdi, rsi, rdx, r10, r8, r9
	uintptr_t rbp;
	uint8_t red_zone[128];
	uintptr_t stack[]; // the caller's stack pointer pointed here
};

// Make the call `number`, of virtual memory or not, and record it. `back` is the address behind
// the system-call instruction. Returns what the kernel returned.
HIDDEN long vm_call(struct vm_registers *call, long number, uintptr_t back);

// Is it a call on virtual memory?
HIDDEN bool vm_is_call(uint32_t number);

// Pages of ours were mapped, or (`gone`) are about to be unmapped. Signals are blocked.
HIDDEN void vm_own(const void *start, size_t bytes, bool gone);

// The lane is new, or has changed hands, and is not busy. For the first lane of an image the
// baseline is recorded: what was mapped before.
HIDDEN void vm_begin(struct lane *lane);

#endif
