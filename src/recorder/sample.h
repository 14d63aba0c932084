// sample: record some allocations, so that the rest costs next to nothing.
//
// With `record --sample MEAN` each thread draws the distance, in bytes of allocation, to the next
// sample from an exponential distribution with that mean: so each byte has the same chance to be
// hit, whatever was hit before, and a block of s bytes is sampled with probability
// 1 - exp(-s / MEAN). That is all that an analyst needs to scale the figures without bias
// (engine/replay/weight.h). A sampled block is recorded with everything; of the others
// nothing is, neither their allocation nor their end. A block of no bytes counts as one byte here.
//
// An allocation that is not hit costs one subtraction and a branch. A free has to know whether its
// block was sampled: a table of small counters says no for nearly all, a set of addresses
// then decides. Both are lock-free. A forked child keeps its copy of them.
//
// Whether to sample is known once the recording has begun. Until then `sample_mean` is
// SAMPLE_UNKNOWN, and the first call finds out.
//
// With a budget (budget.h) it is SAMPLE_AT_TIMES: the distance is that of the thread, which may
// turn at any allocation, and while it is none every call is a sample that stands for itself alone.
#pragma once

#include "recorder/budget.h"
#include "recorder/kernel.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// Values of sample_mean that are no distance: the recording has not begun, so that it is not known;
// and there is a budget, so that each thread has a distance of its own.
#define SAMPLE_UNKNOWN UINT64_MAX
#define SAMPLE_AT_TIMES UINT64_C(1)

// 131,072 counters of a byte each. One that has come to 255 stays there.
enum { SAMPLE_FILTER_LOG2 = 17 };

HIDDEN extern uint64_t sample_mean;                           // bytes; 0: record everything
HIDDEN extern uint8_t sample_filter[1 << SAMPLE_FILTER_LOG2]; // counts of sampled blocks

// Where a thread is on its way to its next sample. All zero at first.
struct sample_way {
	int64_t left;    // bytes to go
	uint64_t seed;   // of its random numbers; 0: nothing was drawn yet
	uint64_t points; // samples in the last block that was hit; only while somebody watches
	// With a budget:
	uint32_t turn;  // the distance that is gone by, as a power of two; 0: each is hit
	uint32_t drawn; // that of the last hit
	uint32_t calls; // that were recorded as all are
	bool due;       // the next that is recorded is timed
};

// What malloc and free ask first, both at once.
union sample_seldom {
	struct {
		bool sampled; // sample_mean is not 0
		// There is an allocator that may call hooks (inside_linux.h). So it is taken to be
		// until inside_find has looked.
		bool watched;
	};
	uint16_t any;
};
HIDDEN extern union sample_seldom sample_seldom;

#ifndef KERNEL_NT
// The thread's own. On Windows it is in the thread's lane.
HIDDEN extern __thread struct sample_way sample_way;
#endif

// While the recording begins: sample with this mean, or everything (0). False: no memory for it.
// Takes 8.5 MiB of addresses, for a million sampled blocks at a time; little of that is touched. A
// forked child keeps its parent's.
HIDDEN bool sample_start(uint64_t mean);

// The same with a budget, whose turns are in that word.
HIDDEN bool sample_start_at_times(const _Atomic uint32_t *turn);

// The block at `address` is a sample from here on, before anybody can free it. False: there is no
// room for more. Also when one whose end was announced (sample_passed) lives on, as a realloc
// failed. Then it is counted as dropped, and must not be recorded.
HIDDEN bool sample_keep(uint64_t address);

// The slow halves of the two below; `size` is not 0.
HIDDEN bool sample_hit(struct sample_way *way, uint64_t size);
HIDDEN bool sample_was_hit(uint64_t address);

// With a budget: go by what the collector says now; the block at `address`, which was recorded, is
// about to end. sample_ends says whether it was recorded, and that it no longer is.
HIDDEN void sample_turn(struct sample_way *way);
HIDDEN bool sample_ends(uint64_t address);

// The upper half of a product: blocks are 16 bytes apart, so the lower four bits say nothing.
static inline uint32_t sample_hash(uint64_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

// Whether an allocation of `size` bytes is no sample, so that nothing is recorded of it. Only while
// sample_mean is not 0. `way` is the calling thread's.
static inline bool sample_passes(struct sample_way *way, uint64_t size)
{
	int64_t left;

	if (unlikely(atomic_load_explicit(budget_turn, memory_order_relaxed) != way->turn))
		sample_turn(way);
	// A block of no bytes has the chance of one byte, as the analyst assumes (weight.h).
	size += !size;
	// What is too large to count surely fails, and surely is a sample.
	if (unlikely(__builtin_sub_overflow(way->left, size, &left)))
		left = 0;
	way->left = left;
	return likely(left > 0) || !sample_hit(way, size);
}

// The same for the end of a block. It is no longer a sampled one afterwards.
static inline bool sample_passed(uint64_t address)
{
	const uint8_t *count = &sample_filter[sample_hash(address) >> (32 - SAMPLE_FILTER_LOG2)];

	if (budget_leaves)
		return likely(!budget_has(address)) || !sample_ends(address);
	if (likely(!__atomic_load_n(count, __ATOMIC_RELAXED)) &&
	    likely(sample_mean != SAMPLE_UNKNOWN))
		return true;
	return !sample_was_hit(address);
}

// When a call that is about to be recorded begins to be; 0: it is not timed. And the end of that.
// In counts of the processor's counter, and only where that may be read.
static inline uint64_t sample_time(struct sample_way *way)
{
	if (likely(!way->due))
		return 0;
	way->due = false;
	return counter_read();
}

static inline void sample_timed(uint64_t began, bool sample)
{
	if (unlikely(began))
		budget_measured(began, sample);
}
