// Several runs of a program against limits. A limit that was given, or a figure that all runs of a
// baseline have alike, holds for every run. A figure that differed from run to run is compared with
// chance: it exceeds only if it is higher by more than runs differ among themselves.
//
// For example: a baseline of "peak = 1000 1040 1010", three runs of 1090, 1100, 1080. Of the 20
// ways to choose three of the six as the baseline no other makes as much of a difference, and one
// in twenty may: exceeded, by 73 on average. With two runs there are 10 ways, and nothing could be
// said: such a check is not judged, and says how many it takes.
#include "report/find/check.h"

#include "base/mem.h"
#include "engine/significance.h"

#include <math.h>

void check_runs_add(struct check_runs *runs, uint64_t value)
{
	*MEM_ADD(runs->values, runs->count, runs->capacity) = value;
}

// 0 where there are no runs.
uint64_t check_runs_most(const struct check_runs *runs)
{
	uint64_t most = 0;

	for (size_t i = 0; i < runs->count; i++)
		most = runs->values[i] > most ? runs->values[i] : most;
	return most;
}

// UINT64_MAX where there are no runs; callers have one at least.
uint64_t check_runs_least(const struct check_runs *runs)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < runs->count; i++)
		least = runs->values[i] < least ? runs->values[i] : least;
	return least;
}

uint64_t check_runs_mean(const struct check_runs *runs)
{
	double sum = 0;

	for (size_t i = 0; i < runs->count; i++)
		sum += (double)runs->values[i];
	return runs->count ? (uint64_t)llround(sum / (double)runs->count) : 0;
}

bool check_runs_vary(const struct check_runs *runs)
{
	return runs->count > 1 && check_runs_least(runs) != check_runs_most(runs);
}

// The values of both, the old ones first, as the test of significance takes them. The caller frees
// it.
static double *values_of(const struct check_runs *before, const struct check_runs *after)
{
	double *values = mem_alloc(before->count + after->count, sizeof *values);

	for (size_t i = 0; i < before->count; i++)
		values[i] = (double)before->values[i];
	for (size_t i = 0; i < after->count; i++)
		values[before->count + i] = (double)after->values[i];
	return values;
}

// Of runs that were alike none may be higher and the mean must be lower: the ratchet moves only for
// a gain that is sure.
bool check_runs_lower(const struct check_runs *runs, const struct check_runs *old)
{
	struct significance *significance;
	double *values;
	bool lower;

	if (!check_runs_vary(old))
		return check_runs_most(runs) <= check_runs_most(old) &&
		       check_runs_mean(runs) < check_runs_mean(old);
	if (!significance_possible(runs->count, old->count, true))
		return false;
	values = values_of(runs, old);
	// The new runs are put first: "the second half is higher" then says that the old ones were.
	significance = significance_new(runs->count, old->count, true);
	significance_add(significance, values);
	significance_settle(significance);
	lower = significance_judge(significance, values).changed;
	significance_free(significance);
	mem_free(values);
	return lower;
}

// ---- what is compared with chance ----

// A limit that was given on the command line is exact, and so is one number in a baseline.
static bool by_chance(const struct check_row *row)
{
	return row->known && row->limit.of_baseline && check_runs_vary(&row->limit.runs);
}

// The least number of runs with which anything could be said, for the message.
static size_t runs_needed(size_t of_baseline)
{
	size_t count = 1;

	while (!significance_possible(of_baseline, count, true) && count < SIGNIFICANCE_RUNS_MAX)
		count++;
	return count;
}

// Too few runs, or more than can be compared. Why it is not judged, owned; NULL: it can be.
static char *why_not(const struct check_row *row)
{
	size_t old = row->limit.runs.count, count = row->runs.count;
	struct str text = { 0 };

	if (old + count > SIGNIFICANCE_RUNS_MAX)
		str_format(&text, "%zu runs and a baseline of %zu: at most %d can be compared",
			   count, old, SIGNIFICANCE_RUNS_MAX);
	else if (!significance_possible(old, count, true))
		str_format(
			&text,
			"%s differs from run to run in the baseline: %zu runs are needed to "
			"compare with its %zu, and there %s %zu (try: tidemark bench --runs %zu)",
			check_names[row->figure], runs_needed(old), old, count == 1 ? "is" : "are",
			count, runs_needed(old));
	return text.length ? str_take(&text) : NULL;
}

// Rows whose baselines have as many runs are one family: at most one check in twenty of a program
// that is as it was says that anything of it is higher.
// Two passes, since the test needs all rows before it can judge one: the first adds the values of
// each figure, the second asks for each. `old` is the number of runs in the baseline, by which rows
// are grouped.
static void judge_family(struct check *check, size_t old)
{
	struct significance *significance = significance_new(old, check->runs_count, true);
	struct significance_verdict verdict;
	double *values;

	for (int pass = 0; pass < 2; pass++) {
		for (int figure = 0; figure < CHECK_FIGURES; figure++) {
			struct check_row *row = &check->rows[figure];

			if (!by_chance(row) || row->limit.runs.count != old)
				continue;
			values = values_of(&row->limit.runs, &row->runs);
			if (pass == 0) {
				significance_add(significance, values);
			} else {
				verdict = significance_judge(significance, values);
				row->exceeded = verdict.changed;
				row->least_change = verdict.low;
				row->compared = true;
			}
			mem_free(values);
		}
		if (pass == 0)
			significance_settle(significance);
	}
	significance_free(significance);
}

// The last loop counts limits and not figures: one that is not known and has a limit is judged too,
// and then `refusal` says why the whole is not.
static void judge(struct check *check)
{
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		struct check_row *row = &check->rows[figure];
		char *why;

		if (!row->known || !row->limit.given)
			continue;
		if (!by_chance(row)) {
			row->exceeded = row->value > row->limit.most;
			continue;
		}
		row->value = check_runs_mean(&row->runs);
		row->limit.most = check_runs_mean(&row->limit.runs);
		why = why_not(row);
		if (why && !check->refusal)
			check->refusal = why;
		else if (why)
			mem_free(why);
		else if (!row->compared)
			judge_family(check, row->limit.runs.count);
	}
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		check->judged += check->rows[figure].limit.given;
		check->exceeded += check->rows[figure].exceeded;
	}
}

// The row of the run that has most.
// Its sites are taken from it: `runs` can still be freed, and frees them no second time.
static void take_row(struct check_row *row, struct check *runs, size_t count, int figure)
{
	struct check_row *most = &runs[0].rows[figure];
	struct check_runs values = { 0 };
	bool known = true;

	ASSERT(count > 0 && figure >= 0 && figure < CHECK_FIGURES);
	for (size_t i = 0; i < count; i++) {
		struct check_row *other = &runs[i].rows[figure];

		known &= other->known;
		check_runs_add(&values, other->value);
		if (other->value > most->value)
			most = other;
	}
	*row = *most;
	most->sites = NULL;
	most->sites_count = 0;
	row->runs = values;
	row->known = known;
}

// `check` takes the rows; its refusal is a new text that names the trace, if there are several.
// Only the first is named.
void check_join(struct check *check, struct check *runs, size_t count)
{
	ASSERT(count > 0); // runs: one at least
	*check = runs[0];
	check->refusal = NULL;
	check->runs_count = count;
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		take_row(&check->rows[figure], runs, count, figure);
	for (size_t i = 0; i < count && !check->refusal; i++) {
		struct str text = { 0 };

		if (!runs[i].refusal)
			continue;
		str_format(&text, "%s%s%s", count > 1 ? runs[i].path : "", count > 1 ? ": " : "",
			   runs[i].refusal);
		check->refusal = str_take(&text);
	}
	judge(check);
}
