// How one gets from a frame to its caller, by what Windows leaves. 64 bits: each function has a
// table (pdata.h), so a rule is compiled from it; a rule that would lead inwards, one that ends
// below the return address itself, is a stop. 32 bits: only some images have DWARF; elsewhere a
// guess is made from what is on the stack, and a rule from a table that turns out wrong is
// replaced by a guess too.
//
// A thread's stack ends in ntdll, which calls its first function. Below that is what the system
// put there: code of no module, at which a walk has ended well.
#include "recorder/cfi.h"
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/patch_win32.h"
#include "recorder/pdata.h"
#include "recorder/recording.h"
#include "recorder/unwind.h"
#include "wire/segment.h"

#define UNWIND_FRAME_BITS (0xffffffull << 16)

enum { UNWIND_BASE_BYTES = 32 }; // of a stack, at its base

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

// 64 bits: the first return address is 0. 32 bits: threads begin in ntdll, fibers where the system
// likes, in the first words of their stack, and a stack that the program made itself anywhere.
bool unwind_may_end(uintptr_t slot, uintptr_t pc)
{
	const uintptr_t *block = (const void *)kernel_teb();

	if (sizeof(void *) == 8)
		return slot && *(const uintptr_t *)slot == 0;
	return slot < block[2] || slot >= block[1] - UNWIND_BASE_BYTES || patch_from_ntdll(pc);
}

// Assembly has tables that say nothing of what it pushes.
unwind_rule unwind_doubt(uint64_t key, unwind_rule rule)
{
	uintptr_t pc = (uintptr_t)(key & ~UNWIND_EXACT);
	struct codemap_place place;
	bool from_table;

	if (sizeof(void *) == 8)
		return UNWIND_NONE;
	recording_lock(&recording_state->code_lock);
	place = codemap_find(pc - 1);
	from_table = place.eh_header && (cfi_compile(place.eh_header, pc - 1, pc, NULL) &
					 ~UNWIND_FRAME_BITS) == (rule & ~UNWIND_FRAME_BITS);
	if (from_table) {
		rule = UNWIND_GUESS_BLIND | (rule & UNWIND_FRAME_BITS);
		unwind_replace(key, rule);
	}
	recording_unlock(&recording_state->code_lock);
	return from_table ? rule : (unwind_rule)UNWIND_NONE;
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
		if (!place.module && !place.generated && !kernel_can_run(pc))
			return UNWIND_END_HERE;
		rule = pdata_compile(&place, exact_pc, (key & UNWIND_EXACT) != 0);
	}
	if (unwind_kind(rule) == UNWIND_RSP && unwind_cfa_offset(rule) < (int64_t)sizeof(void *))
		rule = UNWIND_STOP; // it would not lead outwards
	frame = codemap_frame(pc, place.module, key & UNWIND_EXACT ? SEGMENT_FRAME_EXACT_PC : 0);
	return rule | (uint64_t)frame << 16;
}
