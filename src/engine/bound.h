// bound: between which two figures the true peak of live bytes lies.
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
// bound_high is the largest of the former, bound_low of the latter, over all ticks. For one thread
// both are the peak itself. Constant time and memory per event.
#ifndef ENGINE_BOUND_H
#define ENGINE_BOUND_H

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

// `thread` changed the level by `change` bytes at `time_ns`.
void bound_change(struct bound *bound, struct bound_thread *thread, uint64_t time_ns,
		  int64_t change);

// Close the running tick. Call it once, before low and high are read.
void bound_finish(struct bound *bound);

#endif
