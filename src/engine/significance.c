// A worked example: 4 runs before, 4 after; a site makes 100 calls in each run before and 103 in
// each after; another, of a hash table, 50 52 49 51 | 51 50 52 49. Of 70 ways to call four of the
// eight runs "before", two (as it was, and reversed) part the first site's values without spread:
// t is infinite there. In any other way its |t| is at most 1.4, the other site's at most 4.9 (two
// ways: 49 49 50 50 | 51 51 52 52). 70 / 20 allows three ways beyond the bound, so it is the fourth
// largest of the 70 maxima, 4.9, which infinity exceeds: changed, by 3, exactly. The second site's
// own t is 0: not changed.
#include "engine/significance.h"

#include "base/mem.h"
#include "base/sort.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct significance {
	size_t runs[2], total;
	bool only_more;
	size_t labellings;
	uint16_t *members; // of each labelling, runs[0] numbers of runs: those called "before"
	double *largest;   // of each labelling; the first is as it was
	double bound;
	bool can; // anything be called changed
};

// ---- ways to relabel ----

// n over k, or more than `most`.
static size_t ways(size_t n, size_t k, size_t most)
{
	double count = 1;

	ASSERT(k <= n);
	k = k < n - k ? k : n - k;
	for (size_t i = 1; i <= k; i++) {
		count = count * (double)(n - k + i) / (double)i;
		if (count > (double)most + 0.5)
			return most + 1;
	}
	return (size_t)(count + 0.5);
}

// The next choice of `k` of `n` numbers, in their order.
static void advance(uint16_t *chosen, size_t k, size_t n)
{
	size_t i = k;

	ASSERT(k <= n);
	while (i > 0 && chosen[i - 1] == n - k + (i - 1))
		i--;
	if (i == 0)
		return;
	chosen[i - 1]++;
	for (; i < k; i++)
		chosen[i] = (uint16_t)(chosen[i - 1] + 1);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

// The first `k` of a shuffle.
static void choose(uint16_t *chosen, size_t k, size_t n, uint64_t *state)
{
	uint16_t all[SIGNIFICANCE_RUNS_MAX];

	ASSERT(k <= n && n <= SIGNIFICANCE_RUNS_MAX && *state);
	for (size_t i = 0; i < n; i++)
		all[i] = (uint16_t)i;
	for (size_t i = 0; i < k; i++) {
		size_t other = i + next_random(state) % (n - i);
		uint16_t kept = all[i];

		all[i] = all[other];
		all[other] = kept;
		chosen[i] = all[i];
	}
}

// All ways to say which runs are A's, if there are few: of 3 and 3 runs there are 20. If there are
// too many, so many of them by chance, but by the same chance each time, so that an answer can be
// had again. The first is how it was.
static void relabel(struct significance *significance)
{
	size_t k = significance->runs[0], n = significance->total;
	size_t count = ways(n, k, SIGNIFICANCE_LABELLINGS);
	bool all = count <= SIGNIFICANCE_LABELLINGS;
	uint64_t state = 0x9e3779b97f4a7c15U;

	ASSERT(k > 0 && k < n);
	significance->labellings = all ? count : SIGNIFICANCE_LABELLINGS;
	significance->members = mem_alloc(significance->labellings * k, sizeof(uint16_t));
	significance->largest = mem_alloc(significance->labellings, sizeof(double));
	for (size_t i = 0; i < k; i++)
		significance->members[i] = (uint16_t)i;
	for (size_t way = 1; way < significance->labellings; way++) {
		uint16_t *chosen = significance->members + way * k;

		if (all) {
			memcpy(chosen, chosen - k, k * sizeof *chosen);
			advance(chosen, k, n);
		} else {
			choose(chosen, k, n, &state);
		}
	}
}

bool significance_possible(size_t before, size_t after, bool only_more)
{
	size_t count = ways(before + after, before, SIGNIFICANCE_LABELLINGS);
	bool mirrored = before == after && !only_more;

	// Four runs and four have 70 ways: 70 / 20 is 3. Three and three have 20, and the mirror of
	// what was is as large, so one in twenty is never reached: 20 / 20 < 2.
	return before && after && before + after > 2 &&
	       count / SIGNIFICANCE_ONE_IN >= (mirrored ? 2 : 1);
}

struct significance *significance_new(size_t before, size_t after, bool only_more)
{
	struct significance *significance = mem_alloc(1, sizeof *significance);

	ASSERT(before && after && before + after <= SIGNIFICANCE_RUNS_MAX);
	significance->runs[0] = before;
	significance->runs[1] = after;
	significance->total = before + after;
	significance->only_more = only_more;
	significance->can = significance_possible(before, after, only_more);
	significance->bound = INFINITY;
	relabel(significance);
	return significance;
}

void significance_free(struct significance *significance)
{
	if (!significance)
		return;
	MEM_FREE(significance->members, significance->largest, significance);
}

// ---- figures ----

// What does not change by relabelling.
struct figure {
	double first; // values are taken less this, so that small spreads keep their digits
	double sum, squares;
};

static struct figure measure(const struct significance *significance, const double *values)
{
	struct figure figure = { .first = values[0] };

	for (size_t i = 0; i < significance->total; i++) {
		double value = values[i] - figure.first;

		figure.sum += value;
		figure.squares += value * value;
	}
	return figure;
}

// The change, and the denominator of t.
static double compare(const struct significance *significance, const struct figure *figure,
		      const double *values, const uint16_t *members, double *error)
{
	double before = (double)significance->runs[0], after = (double)significance->runs[1];
	double sum = 0, spread;

	for (size_t i = 0; i < significance->runs[0]; i++)
		sum += values[members[i]] - figure->first;
	spread = figure->squares - sum * sum / before -
		 (figure->sum - sum) * (figure->sum - sum) / after;
	if (spread < figure->squares * 1e-11) // what rounding leaves of nothing
		spread = 0;
	*error = sqrt(spread / (before + after - 2) * (1 / before + 1 / after));
	return (figure->sum - sum) / after - sum / before;
}

static double statistic(const struct significance *significance, double change, double error)
{
	double size = significance->only_more ? fmax(change, 0) : fabs(change);

	if (size <= 0)
		return 0;
	return error > 0 ? size / error : INFINITY;
}

// A figure more: the largest statistic of each labelling over all figures is kept, so that a
// verdict on one allows for how many were looked at.
void significance_add(struct significance *significance, const double *values)
{
	struct figure figure;
	double error, change, t;

	ASSERT(significance && values);
	figure = measure(significance, values);
	if (figure.squares <= 0 || !significance->can) // the same in all runs
		return;
	for (size_t way = 0; way < significance->labellings; way++) {
		change = compare(significance, &figure, values,
				 significance->members + way * significance->runs[0], &error);
		t = statistic(significance, change, error);
		if (t > significance->largest[way])
			significance->largest[way] = t;
	}
}

SORT_ORDER(largest_first, double, SORT_BY(*other, *one))

void significance_settle(struct significance *significance)
{
	ASSERT(significance->labellings > significance->labellings / SIGNIFICANCE_ONE_IN);
	ASSERT(significance->bound == INFINITY);
	if (!significance->can)
		return;
	qsort(significance->largest, significance->labellings, sizeof(double), largest_first);
	significance->bound = significance->largest[significance->labellings / SIGNIFICANCE_ONE_IN];
}

struct significance_verdict significance_judge(const struct significance *significance,
					       const double *values)
{
	struct figure figure = measure(significance, values);
	struct significance_verdict verdict = { 0 };
	double error, room;

	verdict.change = compare(significance, &figure, values, significance->members, &error);
	verdict.bounded = significance->can && significance->bound < INFINITY;
	// With a bound of 4.9 and an error of 0.5 calls, what is seen as +3 may be anything from
	// 0.55 to 5.45.
	room = verdict.bounded && error > 0 ? significance->bound * error : 0;
	verdict.low = verdict.change - room;
	verdict.high = significance->only_more ? INFINITY : verdict.change + room;
	verdict.changed = verdict.bounded &&
			  statistic(significance, verdict.change, error) > significance->bound;
	return verdict;
}
