#include "recorder/capture.h"
#include "recorder/cfi.h"
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/pdata.h"
#include "recorder/recording.h"
#include "recorder/unwind.h"
#include "wire/segment.h"

// Large pages are not to be had without a privilege.
void unwind_collapse(void)
{
}

static unwind_rule unwind_compile_32(const struct codemap_place *place, uintptr_t pc,
				     uintptr_t exact_pc)
{
	unwind_rule rule = UNWIND_NONE;

	if (!place->module && !kernel_can_run(pc))
		return UNWIND_END_HERE; // what the system has put where a thread begins
	if (place->eh_header)
		rule = cfi_compile(place->eh_header, pc, exact_pc, NULL);
	if (unwind_kind(rule) == UNWIND_NONE || unwind_kind(rule) == UNWIND_STOP)
		rule = UNWIND_GUESS_BLIND;
	return rule;
}

uintptr_t unwind_stack_end(uintptr_t here)
{
	return here; // it is not asked for
}

unwind_rule unwind_make_rule(uint64_t key, bool *lasts)
{
	uintptr_t exact_pc = (uintptr_t)(key & ~UNWIND_EXACT);
	uintptr_t pc = key & UNWIND_EXACT ? exact_pc : exact_pc - 1;
	struct codemap_place place = codemap_find(pc);
	unwind_rule rule;
	uint32_t frame;

	*lasts = true;
	if (sizeof(void *) == 4) {
		rule = unwind_compile_32(&place, pc, exact_pc);
	} else {
		// Wine makes a call of what an exception has interrupted, be it a function's first
		// byte.
		if (place.module && !place.function && pdata_begins(&place, exact_pc)) {
			pc = exact_pc;
			key |= UNWIND_EXACT;
			place = codemap_find(pc);
		}
		rule = pdata_compile(&place, exact_pc, (key & UNWIND_EXACT) != 0);
	}
	if (unwind_kind(rule) == UNWIND_RSP && unwind_cfa_offset(rule) < (int64_t)sizeof(void *))
		rule = UNWIND_STOP; // it would not lead outwards
	frame = codemap_frame(pc, place.module, key & UNWIND_EXACT ? SEGMENT_FRAME_EXACT_PC : 0);
	return rule | (uint64_t)frame << 16;
}

// ---- Code without rules ---------------------------------------------------------------------
//
// 32 bits have no .pdata. A function that keeps a frame pointer is left by the chain. One that does
// not hides its caller from the chain: the next return address there is that of a caller further
// out. But a return address tells by whom it was put: the call before it names the function that it
// calls, directly or by a cell of memory. So a word of the stack whose call leads to the function
// that the walk is in *is* its return address, or was once; the innermost such word is taken. Where
// it lies is the same at each visit to this place of the code, and so becomes the rule.

enum {
	UNWIND_FUNCTION_MAX = 1 << 16, // so far may a place lie behind its function's beginning
	UNWIND_SCAN_WORDS = 1024,
	UNWIND_TRIES = 8,
	UNWIND_PROLOGUE_MAX = 10,
};

// The code at `at`, if `bytes` of it belong to a module. NULL: they do not.
static const uint8_t *unwind_code(uintptr_t at, uint32_t bytes)
{
	struct codemap_place place = codemap_find(at);

	return place.module && at + bytes <= place.end ? (const uint8_t *)at : NULL;
}

static uint32_t unwind_32(const uint8_t *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, 4);
	return value;
}

// A word of memory that code points to. 0: it is in no module.
static uintptr_t unwind_cell(uintptr_t at)
{
	const uint8_t *cell = unwind_code(at, 4);

	return cell ? unwind_32(cell) : 0;
}

// Where the call before the return address `back` leads to. 0: it is none, or leads to where a
// register says.
static uintptr_t unwind_called(uintptr_t back)
{
	const uint8_t *code = unwind_code(back - 6, 6);
	const uint8_t *jump;
	uintptr_t target;

	if (!code)
		return 0;
	if (code[1] == 0xe8)
		target = back + unwind_32(code + 2);
	else if (code[0] == 0xff && code[1] == 0x15)
		return unwind_cell(unwind_32(code + 2));
	else
		return 0;
	// A call of another module's function may lead by a jump of ours.
	jump = unwind_code(target, 6);
	if (jump && jump[0] == 0xff && jump[1] == 0x25)
		return unwind_cell(unwind_32(jump + 2));
	return jump ? target : 0;
}

static bool unwind_holds(uintptr_t function, uintptr_t pc)
{
	return function && pc - function < UNWIND_FUNCTION_MAX;
}

// Whether the function begins with push ebp, mov ebp, esp.
static bool unwind_keeps_frame(uintptr_t function)
{
	const uint8_t *code = unwind_code(function, UNWIND_PROLOGUE_MAX);
	uint32_t at;

	if (!code)
		return false;
	at = code[0] == 0x8b && code[1] == 0xff ? 2 : 0;
	return code[at] == 0x55 && ((code[at + 1] == 0x8b && code[at + 2] == 0xec) ||
				    (code[at + 1] == 0x89 && code[at + 2] == 0xe5));
}

// Where it keeps its caller's ebp, from the cfa; 0: nowhere.
static int64_t unwind_kept_ebp(uintptr_t function)
{
	const uint8_t *code = unwind_code(function, UNWIND_PROLOGUE_MAX);

	for (int64_t i = 0; code && i < UNWIND_PROLOGUE_MAX && code[i] >= 0x50 && code[i] < 0x58;
	     i++)
		if (code[i] == 0x55)
			return -8 - 4 * i;
	return 0;
}

// What the stack shows of the frame of the function that `pc` is in. 0: nothing.
static unwind_rule unwind_scan(uintptr_t pc, uintptr_t sp, uintptr_t rbp, uint32_t frame)
{
	uintptr_t readable = 0;

	for (uintptr_t at = sp; at < sp + UNWIND_SCAN_WORDS * 4; at += 4) {
		uintptr_t back, called;
		int64_t kept;

		if (at >= readable) {
			if (!kernel_can_read(at & ~(uintptr_t)(KERNEL_PAGE - 1)))
				break;
			readable = (at | (KERNEL_PAGE - 1)) + 1;
		}
		back = *(const volatile uintptr_t *)at;
		called = unwind_called(back);
		if (!unwind_holds(called, pc))
			continue;
		if (at == rbp + 4) // as the chain has it
			return unwind_keeps_frame(called)
				       ? unwind_make_saving(UNWIND_RBP, 8, -8, frame)
				       : 0;
		if (unwind_keeps_frame(called)) // it has a frame, and this is of an earlier call
			continue;
		kept = unwind_kept_ebp(called);
		at += 4;
		return kept ? unwind_make_saving(UNWIND_SCANNED, (int64_t)(at - sp), kept, frame)
			    : unwind_make(UNWIND_SCANNED, (int64_t)(at - sp), frame);
	}
	return 0;
}

// How often it was tried in vain stands in the rule, where others have the cfa.
unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t sp, uintptr_t rbp)
{
	int64_t tries = unwind_cfa_offset(rule) / UNWIND_WORD;
	uint32_t frame = unwind_frame(rule);
	unwind_rule learned;

	if (sizeof(void *) == 8 || tries >= UNWIND_TRIES)
		return rule;
	recording_lock(&recording_state->code_lock);
	learned = unwind_scan((uintptr_t)key - 1, sp, rbp, frame);
	if (!learned)
		rule = unwind_make(UNWIND_GUESS_BLIND, (tries + 1) * UNWIND_WORD, frame);
	else
		rule = learned;
	unwind_replace(key, rule);
	recording_unlock(&recording_state->code_lock);
	if (learned) // what was guessed before may be known better now
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	return rule;
}
