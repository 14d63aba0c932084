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
