#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/pdata.h"
#include "recorder/unwind.h"
#include "wire/segment.h"

// Large pages are not to be had without a privilege.
void unwind_collapse(void)
{
}

unwind_rule unwind_make_rule(uint64_t key)
{
	uintptr_t exact_pc = (uintptr_t)(key & ~UNWIND_EXACT);
	uintptr_t pc = key & UNWIND_EXACT ? exact_pc : exact_pc - 1;
	struct codemap_place place = codemap_find(pc);
	unwind_rule rule = pdata_compile(&place, pc);
	uint32_t frame;

	if (unwind_kind(rule) == UNWIND_RSP && unwind_cfa_offset(rule) < (int64_t)sizeof(void *))
		rule = UNWIND_STOP; // it would not lead outwards
	frame = codemap_frame(pc, place.module, key & UNWIND_EXACT ? SEGMENT_FRAME_EXACT_PC : 0);
	return rule | (uint64_t)frame << 16;
}
