// The distance to the next sample is exponential with mean m, so a block of s bytes has none of
// them with probability exp(-s / m). expm1 keeps the digits where s is small beside m: with s = 16
// and m = 2^30 the difference 1 - exp(-s / m) would have lost half of them. A block of 0 bytes is
// drawn as one of 1 byte, and adds no bytes.
#include "engine/replay/weight.h"

#include <math.h>

// What a block that was sampled stands for: one over the probability with which a block of its size
// is. With a mean distance of 1,024 bytes that is 0.632 for one of 1,024 bytes, which stands for
// 1.58 blocks, and 0.0606 for one of 64, which stands for 16.5.
struct weight weight_of(uint64_t mean_bytes, uint64_t size)
{
	double bytes = size > 0 ? (double)size : 1.0;
	double p;

	if (mean_bytes == 0)
		return (struct weight){ WEIGHT_UNIT, size * WEIGHT_UNIT, 0, 0 };
	p = -expm1(-bytes / (double)mean_bytes);
	return (struct weight){
		.count = (uint64_t)(WEIGHT_UNIT / p + 0.5),
		.bytes = (uint64_t)((double)size * WEIGHT_UNIT / p + 0.5),
		.count_variance = (1 - p) / (p * p),
		.bytes_variance = (double)size * (double)size * (1 - p) / (p * p),
	};
}
