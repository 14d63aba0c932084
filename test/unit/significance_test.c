// What is called changed between two groups of runs, and how often wrongly.
#include "engine/significance.h"
#include "test/test.h"

#include <math.h>
#include <stdint.h>

enum { FIGURES = 40, RUNS = 10 };

static double random_value(uint64_t *state)
{
	*state = *state * 6364136223846793005U + 1442695040888963407U;
	return (double)(*state >> 33) / 2147483648.0;
}

TEST(significance_of_the_example_is_what_its_comment_says)
{
	const double exact[] = { 100, 100, 100, 100, 103, 103, 103, 103 };
	const double noisy[] = { 50, 52, 49, 51, 51, 50, 52, 49 };
	struct significance *significance = significance_new(4, 4, false);
	struct significance_verdict verdict;

	significance_add(significance, exact);
	significance_add(significance, noisy);
	significance_settle(significance);
	verdict = significance_judge(significance, exact);
	CHECK(verdict.changed && verdict.bounded);
	CHECK_NEAR(3, verdict.change, 1e-12);
	CHECK_NEAR(3, verdict.low, 1e-12);
	CHECK_NEAR(3, verdict.high, 1e-12);
	verdict = significance_judge(significance, noisy);
	CHECK(!verdict.changed && verdict.bounded);
	CHECK_NEAR(4.47, verdict.high, 0.02); // 4.9 * sqrt(5 / 3 / 2)
	CHECK_NEAR(-4.47, verdict.low, 0.02);
	significance_free(significance);
}

TEST(significance_needs_runs_enough)
{
	CHECK(!significance_possible(1, 1, false));
	CHECK(!significance_possible(3, 3, false));
	CHECK(significance_possible(3, 3, true));
	CHECK(significance_possible(4, 4, false));
	CHECK(significance_possible(3, 4, false));
	CHECK(!significance_possible(1, 18, false));
	CHECK(significance_possible(1, 19, false));
	CHECK(significance_possible(10, 10, false));
}

TEST(significance_of_too_few_runs_is_never_said)
{
	const double values[] = { 1, 1, 1, 9, 9, 9 };
	struct significance *significance = significance_new(3, 3, false);
	struct significance_verdict verdict;

	significance_add(significance, values);
	significance_settle(significance);
	verdict = significance_judge(significance, values);
	CHECK(!verdict.changed && !verdict.bounded);
	CHECK_NEAR(8, verdict.change, 1e-12);
	significance_free(significance);
}

// Whether anything of a table of equal, skewed, dependent figures is called changed; the first is
// larger by `more` in the second group.
static bool calls_changed(uint64_t seed, size_t runs, double more, bool *first)
{
	double values[FIGURES][2 * RUNS];
	struct significance *significance = significance_new(runs, runs, false);
	bool any = false;

	for (size_t f = 0; f < FIGURES; f++) {
		for (size_t i = 0; i < 2 * runs; i++) {
			double own = random_value(&seed);

			// A third take few values; each fourth follows its neighbour.
			values[f][i] = f % 3 == 0 ? floor(3 * own) : exp(4 * own);
			if (f % 4 == 3)
				values[f][i] = values[f - 1][i] + own;
			if (f == 0)
				values[f][i] += i < runs ? 0 : more;
		}
		significance_add(significance, values[f]);
	}
	significance_settle(significance);
	for (size_t f = 0; f < FIGURES; f++) {
		bool changed = significance_judge(significance, values[f]).changed;

		any |= changed;
		if (f == 0)
			*first = changed;
	}
	significance_free(significance);
	return any;
}

TEST(significance_is_wrong_in_one_table_of_twenty_at_most)
{
	unsigned wrong = 0;
	bool first;

	for (uint64_t seed = 1; seed <= 400; seed++)
		wrong += calls_changed(seed * 7919, 5, 0, &first);
	CHECK(wrong <= 20 + 9); // 400 / 20, and two deviations
}

TEST(significance_finds_what_changed)
{
	unsigned found = 0;
	bool first;

	for (uint64_t seed = 1; seed <= 50; seed++) {
		calls_changed(seed * 104729, RUNS, 6, &first);
		found += first;
	}
	CHECK(found >= 48);
}

TEST(significance_of_only_more_passes_over_what_fell)
{
	const double rose[] = { 10, 11, 12, 20, 21, 22 }, fell[] = { 20, 21, 22, 10, 11, 12 };
	struct significance *significance = significance_new(3, 3, true);

	significance_add(significance, rose);
	significance_settle(significance);
	CHECK(significance_judge(significance, rose).changed);
	CHECK(!significance_judge(significance, fell).changed);
	CHECK(isinf(significance_judge(significance, rose).high));
	significance_free(significance);
}

// Large bytes whose spread is small beside them.
TEST(significance_keeps_the_digits_of_large_figures)
{
	const double values[] = { 1e12, 1e12, 1e12, 1e12, 1e12 + 8, 1e12 + 8, 1e12 + 8, 1e12 + 8 };
	struct significance *significance = significance_new(4, 4, false);
	struct significance_verdict verdict;

	significance_add(significance, values);
	significance_settle(significance);
	verdict = significance_judge(significance, values);
	CHECK(verdict.changed);
	CHECK_NEAR(8, verdict.low, 1e-6);
	significance_free(significance);
}
