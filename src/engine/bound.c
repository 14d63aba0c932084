#include "engine/bound.h"

// Sizes come from a file and may be absurd, so sums wrap instead of overflowing.
static int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

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
	if (plus(bound->smallest_sum, bound->spread_max) > 0)
		raise_to(&bound->low,
			 start + (uint64_t)plus(bound->smallest_sum, bound->spread_max));
	bound->level_at_start = bound->level;
	bound->smallest_sum = 0;
	bound->largest_sum = 0;
	bound->spread_max = 0;
}

void bound_change(struct bound *bound, struct bound_thread *thread, uint64_t time_ns,
		  int64_t change)
{
	if (bound->time_ns != time_ns || bound->tick == 0) {
		bound_finish(bound);
		bound->tick++;
		bound->time_ns = time_ns;
	}
	if (thread->tick != bound->tick)
		*thread = (struct bound_thread){ .tick = bound->tick };

	bound->level += (uint64_t)change;
	thread->sum = plus(thread->sum, change);
	if (thread->sum > thread->largest) {
		bound->largest_sum = plus(bound->largest_sum, minus(thread->sum, thread->largest));
		thread->largest = thread->sum;
	} else if (thread->sum < thread->smallest) {
		bound->smallest_sum =
			plus(bound->smallest_sum, minus(thread->sum, thread->smallest));
		thread->smallest = thread->sum;
	}
	if (minus(thread->largest, thread->smallest) > bound->spread_max)
		bound->spread_max = minus(thread->largest, thread->smallest);
}
