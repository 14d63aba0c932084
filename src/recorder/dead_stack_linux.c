// For example, at the end of a program whose main has returned:
//
//     vm_finish                  ours, and its callers:
//     _dl_fini                   the dynamic linker's
//     __run_exit_handlers, exit  the C library's
//     __libc_start_main
//     _start                     has no caller
//
// With a frame of anybody else in between, exit was called from there, and that function and its
// callers still have what they had.
#include "recorder/dead_stack_linux.h"

#include "recorder/scope_linux.h"
#include "recorder/unwind.h"

enum { DEAD_STACK_FRAMES = 16 };

// Whether code is the C library's or the dynamic linker's.
static bool dead_stack_is_system(uintptr_t pc)
{
	uintptr_t start, end;

	for (const struct scope_object *at = scope_objects(); at; at = at->next)
		if ((at == scope_libc() || scope_is_linker(at)) && scope_span(at, &start, &end) &&
		    pc >= start && pc < end)
			return true;
	return false;
}

// 0 also where a rule needs more than rsp and rbp, or no end comes within 16 frames. Each frame has
// to be above the one before and within the stack, since what is read of it is memory.
uintptr_t dead_stack_top(const uintptr_t *fp)
{
	uintptr_t rbp = fp[0], pc = fp[1], sp = (uintptr_t)(fp + 2), top = scope_stack_end(), next;

	for (int i = 0; i < DEAD_STACK_FRAMES; i++) {
		unwind_rule rule = unwind_find(pc);
		enum unwind_kind kind = unwind_kind(rule);

		if (kind == UNWIND_END || kind == UNWIND_END_HERE)
			return sp;
		if ((kind != UNWIND_RSP && kind != UNWIND_RBP) || !dead_stack_is_system(pc))
			return 0;
		next = (kind == UNWIND_RSP ? sp : rbp) + (uintptr_t)unwind_cfa_offset(rule);
		if (next <= sp || next >= top)
			return 0;
		if (unwind_saves_rbp(rule))
			rbp = *(uintptr_t *)(next + (uintptr_t)unwind_rbp_offset(rule));
		sp = next;
		pc = *(uintptr_t *)(sp - UNWIND_WORD);
	}
	return 0;
}
