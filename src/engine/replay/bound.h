// bound: between which two figures the true peak of live bytes is.
//
// The trace fixes one order of all events, but events of different threads within one tick of the
// clock may truly have happened in another. What is known is each thread's own order. So inside a
// tick that began at level L, with every thread's sum of sizes running between its own smallest
// and largest prefix (0 included), the level was
//
//     at most   L + sum of the largest prefixes
//     at least  once as high as L + the largest prefix of any one thread + the smallest of all
//               others, and as high as the level at both edges
//
// `high` is the largest of the former, `low` of the latter, over all ticks. For one thread both are
// the peak itself. Constant time and memory per event.
// For example at L = 100 in one tick: thread a gets 50 and gives them back, thread b gets 30. In
// the order of the trace the level goes 150, 100, 130. If b was first, it was 180 when a had its
// 50: high = 100 + 50 + 30 = 180. It was 150 at least when a had them, whatever b did: low = 100 +
// 50 + 0 = 150.
#pragma once

#include <stdint.h>

// One per thread, kept by the caller. `= { 0 }` is a valid one.
struct bound_thread {
	uint64_t tick; // which tick the sums below belong to
	int64_t sum, smallest, largest;
};

// `= { 0 }` is a valid one.
struct bound {
	uint64_t low, high; // of all ticks that are over
	uint64_t tick;      // number of the running tick; 0: none yet
	uint64_t time_ns;   // its time
	uint64_t level_at_start;
	uint64_t level;
	int64_t smallest_sum; // over the threads of this tick
	int64_t largest_sum;
	int64_t spread_max; // the largest difference of one thread's two prefixes
};

// Close the running tick. Call it once, before low and high are read.
void bound_finish(struct bound *bound);

// Begin the tick of `time_ns`. For bound_change.
void bound_begin(struct bound *bound, uint64_t time_ns);

// Sizes come from a file and may be absurd, so sums wrap instead of overflowing.
static inline int64_t bound_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t bound_minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline void bound_enter(struct bound *bound, struct bound_thread *thread, uint64_t time_ns)
{
	if (bound->time_ns != time_ns || bound->tick == 0)
		bound_begin(bound, time_ns);
	if (thread->tick != bound->tick)
		*thread = (struct bound_thread){ .tick = bound->tick };
}

// `thread` changed the level by `change` bytes at `time_ns`. Here, because it is once for every
// event there is.
static inline void bound_change(struct bound *bound, struct bound_thread *thread, uint64_t time_ns,
				int64_t change)
{
	bound_enter(bound, thread, time_ns);
	bound->level += (uint64_t)change;
	thread->sum = bound_plus(thread->sum, change);
	if (thread->sum > thread->largest) {
		bound->largest_sum =
			bound_plus(bound->largest_sum, bound_minus(thread->sum, thread->largest));
		thread->largest = thread->sum;
	} else if (thread->sum < thread->smallest) {
		bound->smallest_sum =
			bound_plus(bound->smallest_sum, bound_minus(thread->sum, thread->smallest));
		thread->smallest = thread->sum;
	} else {
		return; // neither prefix changed, nor how far they are apart
	}
	if (bound_minus(thread->largest, thread->smallest) > bound->spread_max)
		bound->spread_max = bound_minus(thread->largest, thread->smallest);
}

// Several changes at `time_ns`, which come to `change`, and on the way to `smallest` (0 at most)
// and `largest` (0 at least).
static inline void bound_change_row(struct bound *bound, struct bound_thread *thread,
				    uint64_t time_ns, int64_t change, int64_t smallest,
				    int64_t largest)
{
	int64_t low, high;

	bound_enter(bound, thread, time_ns);
	low = bound_plus(thread->sum, smallest);
	high = bound_plus(thread->sum, largest);
	bound->level += (uint64_t)change;
	thread->sum = bound_plus(thread->sum, change);
	if (high > thread->largest) {
		bound->largest_sum =
			bound_plus(bound->largest_sum, bound_minus(high, thread->largest));
		thread->largest = high;
	}
	if (low < thread->smallest) {
		bound->smallest_sum =
			bound_plus(bound->smallest_sum, bound_minus(low, thread->smallest));
		thread->smallest = low;
	}
	if (bound_minus(thread->largest, thread->smallest) > bound->spread_max)
		bound->spread_max = bound_minus(thread->largest, thread->smallest);
}
