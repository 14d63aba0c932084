// vm: calls on virtual memory, recorded where they enter the kernel.
//
// patch_linux.h leads the system-call sites of libc and of the dynamic linker here, so that what
// they ask of the kernel for themselves is seen too; where code may not be changed, hook_vm_linux.c
// leads at least the program's own calls here, by name. A call that takes memory is recorded after
// it, one that gives memory back (or maps over what may be there) on both sides, as realloc is: so
// nobody else's event on the same pages can come in between. All of them share one order word: see
// docs/notes/0012-virtual-memory.md.
//
// Nothing here calls libc, whatever lock the caller holds: free gives pages back while it holds
// its arena.
#pragma once

#include "recorder/lane.h"

// A call: what is asked, and where from: of a hook that is in front of a function, `frame` is
// the hook's own. At a system-call instruction it is that of what the site calls or, where the site
// only jumps, NULL: then top and rbp tell the registers.
struct vm_ask {
	long words[6];
	const uintptr_t *frame;
	uintptr_t back; // the address after the instruction; 0: a hook's
	uintptr_t *top; // the stack pointer; the two words below it may be lent
	uintptr_t rbp;
	// How it is made; NULL: as a system call. Returns what the kernel would.
	long (*make)(const struct vm_ask *ask);
	bool stranger; // a thread that has nothing of ours: it is made, and not recorded
};

// A thread that has nothing of ours makes a call on memory, which is not recorded: it is counted.
HIDDEN void vm_count_stranger(void);

// Make the call `number`, of virtual memory or not, and record it. Returns what the kernel did.
HIDDEN long vm_call(const struct vm_ask *ask, long number);

// Is it a call on virtual memory?
HIDDEN bool vm_is_call(uint32_t number);

// Not every call of libc and the linker is seen: what is mapped is looked up now and then.
HIDDEN void vm_look_up_from_now(void);

// Something was mapped by a call that was not seen, as it seems: look it up at the next call.
HIDDEN void vm_missed(void);

// The linker is about to unmap a library, or has (`after`), by calls that are not seen.
HIDDEN void vm_closes(bool after);

// The calling thread is about to make a child or a thread that has its memory and its thread block
// and goes on beside it (clone with CLONE_VM alone): its calls are a stranger's from here on.
HIDDEN void vm_share(void);

// Pages of ours were mapped, or (`gone`) are about to be unmapped. Signals are blocked.
HIDDEN void vm_own(const void *start, size_t bytes, bool gone);

// The lane is new, or has changed hands, and is not busy. For the first lane of an image the
// baseline is recorded: what was mapped before.
HIDDEN void vm_begin(struct lane *lane);

// Before the process is sealed (kernel.h): ask what cannot be asked later, and say what was
// mapped until now.
HIDDEN void vm_seal(void);

// The process is about to end, by a call that runs no destructors: a last look at its memory.
HIDDEN void vm_end(void);

// A mark was set at which reachable blocks are looked for: wait until that is done.
HIDDEN void vm_mark(void);
