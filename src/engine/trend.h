// trend: whether something grows, levels off or only took a step, and how fast it grows.
//
// What is judged is the lowest level of each of `count` equal stretches of time (*buckets*), so
// that what comes and goes does not disturb. From them the *floor* is made: at each bucket the
// lowest level of that bucket and of all that follow, which is what was held then and never given
// back. A floor never falls. With F the floor, n its buckets and
//
//     grown = F[n-1] - F[0],  grown in the last third = F[n-1] - F[2n/3]
//
// the first of these that holds is the verdict:
//
//     STEADY      grown < grown_min, or fewer than TREND_BUCKETS_MIN buckets
//     STEPS       the two largest rises from one bucket to the next are three quarters of grown
//     RECENT      the first two thirds hold less than a ninth of grown; STEADY if as much was held
//                 and given back twice before, and all since is one rise: a cache that is emptied
//                 again and again
//     LEVELS_OFF  the last third holds less than a ninth of grown (its rate is below a quarter of
//                 the rate before), or the last sixth holds less than a sixtieth and no single
//                 rise was an eighth of grown
//     GROWS       all else: it was still growing at the end
//
// The slope is Theil's and Sen's: the median of the slopes between all pairs of buckets of the
// floor, which a quarter of wild values cannot move. (H. Theil 1950; P. K. Sen 1968.) The fit is
// the R² of the straight line of least squares through the floor: 1 for a leak that is as steady
// as a clock, and lower the more the growth comes in bursts.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TREND_BUCKETS_MIN = 12, TREND_BUCKETS_MAX = 512 };

enum trend_verdict {
	TREND_STEADY,
	TREND_GROWS,
	TREND_RECENT,
	TREND_LEVELS_OFF,
	TREND_STEPS,
	TREND_VERDICTS,
};

struct trend {
	enum trend_verdict verdict;
	uint64_t grown; // bytes, first to last bucket of the floor
	double slope;   // bytes a bucket; never negative
	double fit;     // R², 0 to 1
};

// `lows` are the lowest levels; at most TREND_BUCKETS_MAX of them. `floor` (NULL: not wanted) has
// room for as many.
struct trend trend_judge(const uint64_t *lows, size_t count, uint64_t grown_min, uint64_t *floor);
