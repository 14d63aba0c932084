// significance: which of many figures differ between two groups of runs, and by how much.
//
//     significance_new
//       significance_add      each figure, with its value in every run
//     significance_settle
//       significance_judge    each of them again: its change, its interval
//     significance_free
//
// The method is a permutation test with the largest statistic of all figures (P. Westfall and
// S. Young 1993, "maxT"). The statistic of a figure is
//
//     t = (mean after - mean before) / (s * sqrt(1 / before + 1 / after))
//
// with s the spread within the groups, pooled: Student's t, without his table. If both groups ran
// the same, it does not matter which runs are called "before", so the runs are relabelled in every
// way (or in SIGNIFICANCE_LABELLINGS ways chosen at random, always the same ones), and of each way
// the largest |t| of all figures is kept. What a figure must exceed (the bound) is what no more
// than one in twenty ways exceeds. So of twenty comparisons of equal programs at most one calls
// anything changed, however many figures there are, and however they depend on each other; nothing
// is assumed of how they are distributed.
//
// The interval of a change is change ± bound * t's denominator; it excludes 0 exactly if the figure
// is called changed. A figure that is the same in all runs of each group has an interval of one
// value.
//
// With few runs there are few ways, and no figure can be beyond one in twenty of them: 4 and 4 have
// 70, 3 and 3 have 20, of which two (as it was, and the other way round) show the largest |t|.
// Where only more counts, not less, 3 and 3 are enough.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SIGNIFICANCE_LABELLINGS = 2000, SIGNIFICANCE_ONE_IN = 20, SIGNIFICANCE_RUNS_MAX = 500 };

struct significance;

struct significance_verdict {
	double change;    // mean after - mean before
	double low, high; // where `bounded`; with `only_more` `high` is infinite
	bool bounded, changed;
};

// So many runs in either group, at least one each and SIGNIFICANCE_RUNS_MAX together. `only_more`:
// a figure that fell is not changed.
struct significance *significance_new(size_t before, size_t after, bool only_more);
void significance_free(struct significance *significance); // NULL is allowed

// Whether there are runs enough for any figure to be called changed.
bool significance_possible(size_t before, size_t after, bool only_more);

// A figure: its values before, then those after.
void significance_add(struct significance *significance, const double *values);

// All figures were added: find the bound.
void significance_settle(struct significance *significance);

// What is said of a figure, by its values again.
struct significance_verdict significance_judge(const struct significance *significance,
					       const double *values);
