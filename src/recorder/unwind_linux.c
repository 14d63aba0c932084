// How the rule for a return address comes about. For example, 0x401234: the rule is for the byte
// before it, 0x401233, since a call may be the last instruction of its function. Of its object:
//
//     .eh_frame has a row for it    that row as a rule (cfi.c)
//     .eh_frame, but no row         a signal's return, by its bytes; the entry of the program or of
//                                   the linker, where all stacks end; else a guess, and the stack
//                                   is marked
//     no .eh_frame                  a guess, marked
//     no object                     generated code: a guess by the chain through rbp
//
// A rule that is not surely for good, because the linker is just mapping an object there, is used
// for this walk and asked for again.
#include "recorder/cfi.h"
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/python.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "recorder/unwind.h"
#include "wire/segment.h"

enum {
	AT_BASE = 7,
	AT_ENTRY = 9,
	UNWIND_ENTRY_BYTES = 64,
	UNWIND_EXIT_BYTES = 24,
	UNWIND_CALL_BYTES = 5,
	UNWIND_GAP_BYTES = 64 << 20, // that the kernel leaves below the main stack, at least
};

// All of the table is in use: one huge page misses the translation buffer less often than 512 small
// ones. Before that it would cost time and memory for nothing. Not every kernel can.
void unwind_collapse(void)
{
	kernel(__NR_madvise, unwind_table, UNWIND_BYTES, KERNEL_MADV_HUGEPAGE);
	kernel(__NR_madvise, unwind_table, UNWIND_BYTES, KERNEL_MADV_COLLAPSE);
}

// musl's and others' signal return has no .eh_frame.
#ifdef __x86_64__
// `pc` is where the handler returns to: libc's few bytes that call the kernel to restore what was
// interrupted. Read as code, since libc may be any.
static bool unwind_is_sigreturn(uintptr_t pc)
{
	// mov $15,%rax; syscall
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };

	return memcmp((const void *)pc, code, sizeof(code)) == 0;
}

static bool unwind_is_old_sigreturn(uintptr_t)
{
	return false;
}

static bool unwind_is_behind_return(uintptr_t)
{
	return false;
}
#else
static bool unwind_is_sigreturn(uintptr_t pc)
{
	static const uint8_t code[] = {
		0xb8, 0xad, 0, 0, 0, 0xcd, 0x80
	}; // mov $173,%eax; int $0x80

	return memcmp((const void *)pc, code, sizeof(code)) == 0;
}

static bool unwind_is_old_sigreturn(uintptr_t pc)
{
	static const uint8_t code[] = {
		0x58, 0xb8, 0x77, 0, 0, 0, 0xcd
	}; // pop; mov $119,%eax; int

	return memcmp((const void *)pc, code, sizeof(code)) == 0;
}

// Not after a call, so there was no call from there: makecontext's trampoline in glibc.
static bool unwind_is_behind_return(uintptr_t pc)
{
	const uint8_t *at = (const uint8_t *)pc;

	return at[-1] == 0xc3 && at[-3] != 0xff; // which may be a call with a displacement of c3
}
#endif

// Whether a call ends just before pc, in any of the forms that compilers write. A word that a guess
// took for a return address, and that is data, hardly ever is.
//
// For example, a function without unwind tables keeps a pointer into the arguments in rbp: the word
// above the one that it leads to is the address of a text.
static bool unwind_is_behind_call(uintptr_t pc)
{
	const uint8_t *at = (const uint8_t *)pc;
	int known = 8; // bytes before pc: more than a call has, and as many as are asked about

	if (kernel_sealed) // what cannot be asked is believed, as code is generated there
		return true;
	if (!kernel_can_read(pc - 8)) {
		// Code may begin with the page.
		known = (int)(pc % KERNEL_PAGE);
		if (known >= 8 || !kernel_can_read(pc - (uintptr_t)known))
			return false;
	}
	if (known >= UNWIND_CALL_BYTES && at[-UNWIND_CALL_BYTES] == 0xe8)
		return true;
	for (int bytes = 2; bytes <= known && bytes < 8; bytes++)
		if (at[-bytes] == 0xff && (at[1 - bytes] & 0x38) == 0x10)
			return true;
	return false;
}

// Whether `exit` is called just behind pc, of the linker if that is libc as well.
static bool unwind_calls(uintptr_t pc, const char *exit)
{
	uintptr_t target = (uintptr_t)scope_next(exit, NULL);
	int32_t distance;

	for (uintptr_t at = pc; target && at < pc + UNWIND_EXIT_BYTES; at++) {
		memcpy(&distance, (const void *)(at + 1), sizeof(distance));
		if (*(const uint8_t *)at == 0xe8 &&
		    at + UNWIND_CALL_BYTES + (uintptr_t)distance == target)
			return true;
	}
	return false;
}

static bool unwind_calls_exit(uintptr_t pc)
{
	return unwind_calls(pc, "exit") || unwind_calls(pc, "pthread_exit");
}

// Code of the linker's without .eh_frame. With musl the linker is libc as well, which also calls
// back (qsort): what comes first is what ends the process or the thread when it is returned to.
static bool unwind_is_linker_entry(uintptr_t pc, const struct codemap_place *place)
{
	uintptr_t exit = (uintptr_t)scope_next("exit", NULL);

	if (exit - place->start >= place->end - place->start)
		return true;
	return unwind_calls_exit(pc);
}

// Code without .eh_frame from which everything comes: the linker's entry, which runs constructors,
// and the executable's.
static bool unwind_is_entry(uintptr_t pc, const struct codemap_place *place)
{
	uintptr_t entry = scope_auxiliary(AT_ENTRY);

	if (place->start && place->start == scope_auxiliary(AT_BASE))
		return unwind_is_linker_entry(pc, place);
	if (pc >= entry && pc - entry < UNWIND_ENTRY_BYTES)
		return true;
	return static_is() && unwind_calls_exit(pc); // musl's start, in the program
}

// The main thread's lies far above all mappings.
bool unwind_may_end(uintptr_t, uintptr_t)
{
	return true;
}

unwind_rule unwind_doubt(uint64_t, unwind_rule)
{
	return UNWIND_NONE;
}

// Where `here` is on the main thread's stack, its end is where the kernel put the arguments. Of
// another thread it is the block that libc keeps at the upper end of the stack.
uintptr_t unwind_stack_end(uintptr_t here)
{
	uintptr_t end = scope_stack_end();

	return end - here < UNWIND_GAP_BYTES ? end : kernel_thread_block();
}

// `key` has UNWIND_EXACT for an address that a signal has interrupted: there is no call before it,
// and the address itself is looked up.
unwind_rule unwind_make_rule(uint64_t key, bool *lasts)
{
	uintptr_t exact_pc = (uintptr_t)(key & ~UNWIND_EXACT);
	uintptr_t pc = key & UNWIND_EXACT ? exact_pc : exact_pc - 1;
	struct codemap_place place = codemap_find(pc);
	bool starts_here = false;
	unwind_rule rule = UNWIND_GUESS_BLIND;
	uint32_t frame;

	// A frame's id goes into the rule, so that a stack is recorded without a second look-up.
	*lasts = !place.coming;
	if (place.eh_header)
		rule = cfi_compile(place.eh_header, pc, exact_pc, &starts_here);
	if (unwind_kind(rule) == UNWIND_NONE) {
		if ((starts_here || unwind_is_behind_return(exact_pc)) && !(key & UNWIND_EXACT))
			return UNWIND_END_HERE; // makecontext's trampoline
		if (unwind_is_sigreturn(exact_pc) || unwind_is_old_sigreturn(exact_pc))
			rule = UNWIND_SIGNAL;
		else if (unwind_is_entry(pc, &place))
			rule = UNWIND_END;
		else
			rule = UNWIND_GUESS_BLIND;
	}
	if (unwind_kind(rule) == UNWIND_GUESS_BLIND && !place.start && !place.coming &&
	    !(key & UNWIND_EXACT) && !unwind_is_behind_call(exact_pc)) {
		// Data, which a guess took for a return address. Code may be generated there.
		*lasts = false;
		return UNWIND_END_HERE;
	}
	if (unwind_kind(rule) == UNWIND_SIGNAL && unwind_is_old_sigreturn(exact_pc))
		rule = UNWIND_SIGNAL_OLD;
	if (unwind_kind(rule) == UNWIND_RSP && unwind_cfa_offset(rule) < UNWIND_WORD)
		rule = UNWIND_STOP; // it would not lead outwards
	frame = codemap_frame(pc, place.module,
			      (key & UNWIND_EXACT ? SEGMENT_FRAME_EXACT_PC : 0) |
				      (python_is_evaluator(pc) ? SEGMENT_FRAME_EVALUATOR : 0));
	return rule | (uint64_t)frame << 16;
}
