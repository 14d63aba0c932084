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
#pragma once

#include "recorder/kernel.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_UNKNOWN UINT64_MAX

enum { SAMPLE_FILTER_LOG2 = 17 };

HIDDEN extern uint64_t sample_mean;                           // bytes; 0: record everything
HIDDEN extern uint8_t sample_filter[1 << SAMPLE_FILTER_LOG2]; // counts of sampled blocks

// Where a thread is on its way to its next sample. All zero at first.
struct sample_way {
	int64_t left; // bytes to go
	uint64_t seed;
	uint64_t points; // samples in the last block that was hit; only while somebody watches
};

#ifndef KERNEL_NT
// The thread's own. On Windows it is in the thread's lane.
HIDDEN extern __thread struct sample_way sample_way;
#endif

// While the recording begins: sample with this mean, or everything (0). False: no memory for it.
HIDDEN bool sample_start(uint64_t mean);

// The block at `address` is a sample from here on, before anybody can free it. False: there is no
// room for more. Also when one whose end was announced (sample_passed) lives on, as a realloc
// failed.
HIDDEN bool sample_keep(uint64_t address);

// The slow halves of the two below; `size` is not 0.
HIDDEN bool sample_hit(struct sample_way *way, uint64_t size);
HIDDEN bool sample_was_hit(uint64_t address);

static inline uint32_t sample_hash(uint64_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

// Whether an allocation of `size` bytes is no sample, so that nothing is recorded of it. Only while
// sample_mean is not 0.
static inline bool sample_passes(struct sample_way *way, uint64_t size)
{
	int64_t left;

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

	if (likely(!__atomic_load_n(count, __ATOMIC_RELAXED)) &&
	    likely(sample_mean != SAMPLE_UNKNOWN))
		return true;
	return !sample_was_hit(address);
}
