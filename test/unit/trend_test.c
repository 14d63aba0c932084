// Shapes of growth with known slopes, and what must be said of each.
#include "engine/trend.h"
#include "test/test.h"

#include <stdlib.h>

enum { N = 48 };

static struct trend judge(double (*shape)(int bucket), uint64_t grown_min)
{
	uint64_t lows[N];

	for (int i = 0; i < N; i++)
		lows[i] = (uint64_t)shape(i);
	return trend_judge(lows, N, grown_min, NULL);
}

static double leak(int i)
{
	return 5000 + 1000.0 * i;
}

TEST(trend_of_a_leak_is_its_slope)
{
	struct trend trend = judge(leak, 1);

	CHECK_EQ(TREND_GROWS, trend.verdict);
	CHECK_EQ(47000, trend.grown);
	CHECK_NEAR(1000, trend.slope, 1e-6);
	CHECK_NEAR(1.0, trend.fit, 1e-9);
}

static double noisy_leak(int i)
{
	return 1e6 + 200.0 * i + (i * 7919 % 13) * 1000.0;
}

TEST(trend_of_a_slow_leak_under_noise_is_near_its_slope)
{
	struct trend trend = judge(noisy_leak, 1);

	CHECK_EQ(TREND_GROWS, trend.verdict);
	CHECK_NEAR(200, trend.slope, 50);
}

// The fewer are missing, the fewer are put in.
static double cache(int i)
{
	double level = 0;

	while (i-- > 0)
		level += (1e6 - level) / 8;
	return level;
}

static double logistic(int i)
{
	double level = 5000;

	while (i-- > 0)
		level += level * (1 - level / 1e6) * 0.4;
	return level;
}

static double ramp_then_plateau(int i)
{
	return i < 38 ? 1000.0 * i : 38000.0;
}

TEST(trend_tells_what_levels_off_from_what_grows)
{
	CHECK_EQ(TREND_LEVELS_OFF, judge(cache, 1).verdict);
	CHECK_EQ(TREND_LEVELS_OFF, judge(logistic, 1).verdict);
	CHECK_EQ(TREND_LEVELS_OFF, judge(ramp_then_plateau, 1).verdict);
}

static double evicting_cache(int i)
{
	return i < 20 ? 5000.0 * i : 100000.0 - (i % 5) * 900.0;
}

TEST(trend_sees_a_cache_that_evicts_level_off)
{
	CHECK_EQ(TREND_LEVELS_OFF, judge(evicting_cache, 1).verdict);
}

static double step(int i)
{
	return i < 20 ? 100.0 : 90000.0;
}

static double doubling(int i)
{
	return i < 3 ? 1024 : i < 6 ? 2048 : i < 12 ? 4096 : i < 24 ? 8192 : 16384;
}

TEST(trend_sees_steps)
{
	CHECK_EQ(TREND_STEPS, judge(step, 1).verdict);
	CHECK_EQ(TREND_STEPS, judge(doubling, 1).verdict);
}

static double leak_of_big_blocks(int i)
{
	return 65536.0 * (i / 5);
}

TEST(trend_takes_many_equal_steps_for_growth)
{
	CHECK_EQ(TREND_GROWS, judge(leak_of_big_blocks, 1).verdict);
}

static double sawtooth(int i)
{
	return i % 8 * 1000.0;
}

static double sawtooth_on_a_leak(int i)
{
	return i % 6 * 5000.0 + i * 100.0;
}

// The last third begins within the last tooth; what was before, by the bits of `shape`: 1 is one
// tooth as high, 2 a second one, 4 the last one's rise has a fall in it that is not deep.
static struct trend judge_teeth(unsigned shape)
{
	uint64_t lows[N] = { 0 };

	for (int i = 0; i < N; i++) {
		int last = i - 36;

		if (last >= 0)
			lows[i] = 1000 * (uint64_t)last;
		else if (i < 12 ? shape & 1 : i < 24 && shape & 2)
			lows[i] = 1000 * (uint64_t)(i % 12 + 2);
	}
	if (shape & 4) {
		lows[45] += 3000;
		lows[44] += 3000;
	}
	return trend_judge(lows, N, 1, NULL);
}

TEST(trend_takes_a_tooth_like_those_before_for_no_growth)
{
	CHECK_EQ(TREND_RECENT, judge_teeth(0).verdict);
	CHECK_EQ(TREND_RECENT, judge_teeth(1).verdict);
	CHECK_EQ(TREND_RECENT, judge_teeth(2).verdict);
	CHECK_EQ(TREND_STEADY, judge_teeth(1 | 2).verdict);
	CHECK_EQ(TREND_RECENT, judge_teeth(1 | 2 | 4).verdict);
}

TEST(trend_looks_under_a_sawtooth)
{
	struct trend trend = judge(sawtooth_on_a_leak, 1);

	CHECK_EQ(TREND_STEADY, judge(sawtooth, 1).verdict);
	CHECK(trend.verdict == TREND_GROWS || trend.verdict == TREND_RECENT);
	CHECK_NEAR(100, trend.slope, 30);
}

static double still(int i)
{
	return 4096 + i % 3 * 0.0;
}

static double released(int i)
{
	return i < 47 ? 1000.0 * i : 0;
}

TEST(trend_is_steady_where_nothing_was_kept)
{
	CHECK_EQ(TREND_STEADY, judge(still, 0).verdict);
	CHECK_EQ(TREND_STEADY, judge(released, 1).verdict);
	CHECK_EQ(TREND_STEADY, judge(leak, 47001).verdict);
	CHECK_EQ(TREND_GROWS, judge(leak, 47000).verdict);
}

TEST(trend_needs_enough_to_judge)
{
	uint64_t lows[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

	CHECK_EQ(TREND_STEADY, trend_judge(lows, 0, 1, NULL).verdict);
	CHECK_EQ(TREND_STEADY, trend_judge(lows, 1, 1, NULL).verdict);
	CHECK_EQ(TREND_STEADY, trend_judge(lows, 11, 1, NULL).verdict);
	CHECK_EQ(TREND_GROWS, trend_judge(lows, 12, 1, NULL).verdict);
}

TEST(trend_floor_is_what_was_never_given_back)
{
	uint64_t lows[] = { 5, 9, 3, 8, 4, 7 };
	const uint64_t expected[] = { 3, 3, 3, 4, 4, 7 };
	uint64_t floor[6];

	trend_judge(lows, 6, 1, floor);
	for (int i = 0; i < 6; i++)
		CHECK_EQ(expected[i], floor[i]);
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

// As the median is defined: all slopes, sorted.
static double median_slope(const uint64_t *floor, size_t count)
{
	static double slopes[TREND_BUCKETS_MAX * TREND_BUCKETS_MAX];
	size_t pairs = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			slopes[pairs++] = (double)(floor[j] - floor[i]) / (double)(j - i);
	qsort(slopes, pairs, sizeof *slopes, compare_doubles);
	return (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2;
}

TEST(trend_has_the_median_slope_of_any_floor)
{
	uint64_t lows[N], floor[N], random = 12345;

	for (int turn = 0; turn < 2000; turn++) {
		size_t count = 2 + (size_t)turn % (N - 1);
		uint64_t most = turn % 3 ? UINT64_C(1) << turn % 40 : 3; // of few values, too

		for (size_t i = 0; i < count; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
			lows[i] = (random >> 20) % most + (turn % 2 ? i * most / 8 : 0);
		}
		CHECK_EQ(trend_judge(lows, count, 1, floor).slope == median_slope(floor, count), 1);
	}
}
