// weight: what one allocation of a sampled recording stands for.
//
// With a mean distance of m bytes between samples, a block of s bytes is in the
// trace with probability p = 1 - exp(-s / m), whatever else is. So 1/p blocks and s/p bytes are
// what it adds to an estimate that is right on average (Horvitz and Thompson, 1952), and
// (1 - p) / p^2 and s^2 (1 - p) / p^2 are what it adds to the estimate's variance. Sums of integers
// stay exact when blocks come and go; so amounts are kept in fixed point.
//
// For example m = 65536 and a block of 1,024 bytes: p = .0155, so one that is in the trace counts
// for 64.5 blocks and 66,049 bytes, with a standard error of 65,535 bytes. One of 1 MiB at m =
// 524288 has p = .865: it counts for 1.16 blocks of 1,212,697 bytes.
#pragma once

#include <stdint.h>

enum { WEIGHT_UNIT = 1024 }; // one, in fixed point

struct weight {
	uint64_t count, bytes;                 // in units
	double count_variance, bytes_variance; // of the unscaled estimates
};

// `mean_bytes` is trace_info.sample_bytes; 0: not a sampled recording, one block is one block.
struct weight weight_of(uint64_t mean_bytes, uint64_t size);

// From fixed point to the nearest whole number.
static inline uint64_t weight_round(uint64_t units)
{
	return (units + WEIGHT_UNIT / 2) / WEIGHT_UNIT;
}
