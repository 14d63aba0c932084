// The floor, its slope and the verdict.
//
// For example, twelve buckets whose lowest levels are 0, 10, 20 … 110: no bucket is lower than one
// before it, so they are the floor. It grew by 110; the two largest rises are 10 each, far from
// three quarters of that; the last third (from bucket 8 on) has 30, more than a ninth: GROWS, with
// a slope of 10 a bucket and a fit of 1. If the last bucket were 0, the floor would be 0
// everywhere: all was given back, and the verdict is STEADY. If bucket 1 were 100 and the rest 110,
// the rises of 100 and 10 would be all there is: STEPS.
#include "engine/trend.h"

#include "base/mem.h"

#include <stdbool.h>

// A slope that is not negative: they are in order as their bits are.
union slope {
	double value;
	uint64_t bits;
};

// The one that would be at `place` if they were sorted; what is before it then is no more. Each
// turn parts what is left by a value in it, and goes on in the part that has the place.
static uint64_t select_at(uint64_t *list, size_t count, size_t place)
{
	size_t first = 0, end = count;

	ASSERT(place < count);
	while (end - first > 1) {
		uint64_t middle = list[first + (end - first) / 2], swap;
		size_t low = first, high = end;

		// Of equal ones each may be on either side: so both sides are shorter each time.
		for (;;) {
			while (list[low] < middle)
				low++;
			while (list[high - 1] > middle)
				high--;
			if (low + 1 >= high)
				break;
			swap = list[low];
			list[low++] = list[high - 1];
			list[--high] = swap;
		}
		if (place < low)
			end = low;
		else if (place >= high)
			first = high;
		else
			return list[place];
	}
	return list[place];
}

// The median slope of all pairs. A floor never falls.
static double theil_sen(const uint64_t *floor, size_t count)
{
	size_t pairs = count * (count - 1) / 2;
	uint64_t *slopes = mem_alloc(pairs, sizeof *slopes);
	union slope before = { .bits = 0 }, median;
	size_t at = 0;

	ASSERT(count >= 2);
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			double rise = (double)(floor[j] - floor[i]);

			slopes[at++] = (union slope){ .value = rise / (double)(j - i) }.bits;
		}
	median.bits = select_at(slopes, pairs, pairs / 2);
	for (size_t i = 0; i < pairs / 2; i++)
		before.bits = slopes[i] > before.bits ? slopes[i] : before.bits;
	mem_free(slopes);
	return pairs % 2 ? median.value : (before.value + median.value) / 2;
}

// R² of the line of least squares; 0 where nothing varies.
static double fit(const uint64_t *floor, size_t count)
{
	double mean_x = (double)(count - 1) / 2;
	double mean_y = 0;
	double xx = 0, xy = 0, yy = 0;

	// Against the first value, so that little growth on a high floor keeps its digits.
	for (size_t i = 0; i < count; i++)
		mean_y += (double)(floor[i] - floor[0]) / (double)count;
	for (size_t i = 0; i < count; i++) {
		double x = (double)i - mean_x;
		double y = (double)(floor[i] - floor[0]) - mean_y;

		xx += x * x;
		xy += x * y;
		yy += y * y;
	}
	return yy > 0 ? xy * xy / (xx * yy) : 0;
}

// The order matters: a step late in the time would look like growth lately, and one early like a
// level that was reached. A cache that fills up slows down at its end: less than a sixtieth in the
// last sixth of the time, where a straight line has ten times that.
static enum trend_verdict judge(const uint64_t *floor, size_t count, uint64_t grown)
{
	uint64_t largest = 0, second = 0;
	uint64_t late = floor[count - 1] - floor[2 * count / 3];
	uint64_t last = floor[count - 1] - floor[5 * count / 6];

	ASSERT(count >= TREND_BUCKETS_MIN);
	for (size_t i = 1; i < count; i++) {
		uint64_t rise = floor[i] - floor[i - 1];

		if (rise > largest) {
			second = largest;
			largest = rise;
		} else if (rise > second) {
			second = rise;
		}
	}
	if ((double)largest + (double)second >= 0.75 * (double)grown)
		return TREND_STEPS;
	if ((double)(grown - late) < (double)grown / 9)
		return TREND_RECENT;
	if ((double)late < (double)grown / 9)
		return TREND_LEVELS_OFF;
	if ((double)last < (double)grown / 60 && (double)largest < (double)grown / 8)
		return TREND_LEVELS_OFF;
	return TREND_GROWS;
}

// Whether the end lies in the rise of a tooth like those before it: a cache that is emptied again
// and again. Twice at least as much was held as at the end, and more than half of that given back;
// and all since the last fall is one rise, so that nothing is left under the teeth.
//
// For example 0 4 8 0 4 8 0 4: 8 was left twice, and the last fall was to 0. In 0 4 8 0 4 8 0 8 4
// it was to 4, which may have been left for good.
static bool is_in_tooth(const uint64_t *lows, size_t count)
{
	uint64_t level = lows[count - 1], lowest = UINT64_MAX;
	size_t falls = 0;
	bool high = false;

	ASSERT(count >= 2);
	for (size_t i = 0; i < count; i++) {
		high |= lows[i] >= level;
		if (high && lows[i] < level / 2) {
			falls++;
			high = false;
		}
		if (i > 0 && lows[i] + level / 16 < lows[i - 1])
			lowest = lows[i];
	}
	return falls >= 2 && lowest < level / 2;
}

// The floor of a bucket is the lowest level from there on: what was given back later did not grow.
struct trend trend_judge(const uint64_t *lows, size_t count, uint64_t grown_min, uint64_t *floor)
{
	uint64_t own[TREND_BUCKETS_MAX];
	struct trend trend = { .verdict = TREND_STEADY };

	ASSERT(count <= TREND_BUCKETS_MAX);
	if (!floor)
		floor = own;
	for (size_t i = count; i-- > 0;)
		floor[i] = i + 1 < count && floor[i + 1] < lows[i] ? floor[i + 1] : lows[i];
	if (count < 2)
		return trend;
	trend.grown = floor[count - 1] - floor[0];
	trend.slope = theil_sen(floor, count);
	trend.fit = fit(floor, count);
	if (count >= TREND_BUCKETS_MIN && trend.grown > 0 && trend.grown >= grown_min)
		trend.verdict = judge(floor, count, trend.grown);
	if (trend.verdict == TREND_RECENT && is_in_tooth(lows, count))
		trend.verdict = TREND_STEADY;
	return trend;
}
