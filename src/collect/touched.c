// The table is made once more whenever the number of the check has used up its 19 bits: after some
// 524,000 checks, at one a millisecond after nine minutes. Until then a word of an older check is
// free by its number, and nothing is cleared (touched.h).
#include "collect/touched.h"

#include "base/mem.h"
#include "wire/segment.h"

_Static_assert(SEGMENT_LANES_MAX <= TOUCHED_LANE + 1, "a lane's number fits");

void touched_begin(struct touched *touched)
{
	if (touched->slots != NULL && ++touched->check < UINT32_MAX >> TOUCHED_SHIFT)
		return;
	mem_free(touched->slots);
	touched->slots = mem_alloc(LANE_SLOTS, sizeof *touched->slots);
	touched->check = 1;
}

void touched_fini(struct touched *touched)
{
	mem_free(touched->slots);
	touched->slots = NULL;
}
