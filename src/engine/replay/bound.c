#include "engine/replay/bound.h"

static void raise_to(uint64_t *figure, uint64_t value)
{
	if (value > *figure)
		*figure = value;
}

void bound_finish(struct bound *bound)
{
	uint64_t start = bound->level_at_start;

	raise_to(&bound->high, start + (uint64_t)bound->largest_sum);
	raise_to(&bound->low, start);
	raise_to(&bound->low, bound->level);
	if (bound_plus(bound->smallest_sum, bound->spread_max) > 0)
		raise_to(&bound->low,
			 start + (uint64_t)bound_plus(bound->smallest_sum, bound->spread_max));
	bound->level_at_start = bound->level;
	bound->smallest_sum = 0;
	bound->largest_sum = 0;
	bound->spread_max = 0;
}

void bound_begin(struct bound *bound, uint64_t time_ns)
{
	bound_finish(bound);
	bound->tick++;
	bound->time_ns = time_ns;
}
