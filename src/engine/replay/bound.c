// A tick is closed when an event of another time comes, or at the end. Its figures are raised to
// what the tick may have reached, and the sums begin again; those of threads are left alone, and
// are reset by bound_change when their thread is met in a new tick (bound_thread.tick).
//
// Of the lower bound: the largest prefix of one thread and the smallest of all others is
// smallest_sum, which has that thread's too, and how far the two of it are apart: so for each
// thread smallest_sum + its spread, and the best thread is the one with spread_max.
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
