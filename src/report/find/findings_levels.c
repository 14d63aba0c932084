// Findings about levels over time, from what growth and transients have found: growth without end,
// caches, steps, peaks, buffers that could be reused.
//
// These are judged by curves: growth (engine/trend.h), levels that a site reached and kept, peaks
// that a spike makes. Each has a least size that matters, a part of the program's own peak, so that
// a program of 2 GiB is not told of 100 KiB. With a peak of 512 MiB a site must have grown by a
// 50th of that, 10.2 MiB, to be named; with a peak of 5 MiB by 256 KiB, which is the least.
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

enum {
	// Of the peak: what the spike must rise by.
	PEAK_RISE_PART = 4,
	// Of the time: how long it may take at half its height.
	PEAK_TIME_PART = 4,
	// Hills in each other, and equal ones, that are looked at.
	PEAK_OTHERS_MAX = 8,
	REUSE_COUNT_MIN = 10,
	// From where on glibc gives a block a mapping of its own, and each of them has to be
	// touched again.
	REUSE_SIZE_MIN = 128 << 10,
	LONG_S = 60, // a process of so long is no program that builds up and ends
};

#define STEADY 0.9 // R² of a straight line, at least

// ---- growth ----

// NULL: it has none that the filters select.
static const struct heap_site *site_of(const struct findings *findings,
				       const struct query_context_place *place)
{
	size_t count;
	const struct heap_site *sites = heap_sites(findings->facts->heap, &count);

	for (size_t i = 0; i < count; i++)
		if (sites[i].process == place->process && sites[i].stack == place->stack)
			return &sites[i];
	return NULL;
}

// A finding has room for eight figures: these are five of them.
static void add_figures(struct finding *finding, const struct growth_row *row)
{
	findings_figure(finding, "grown_bytes", "grown", FINDINGS_BYTES, row->trend.grown);
	findings_figure(finding, "grown_count", "blocks more", FINDINGS_COUNT,
			row->grown_count > 0 ? (uint64_t)row->grown_count : 0);
	findings_figure(finding, "live_bytes", "live before the end", FINDINGS_BYTES,
			row->live.bytes);
	findings_figure(finding, "slope_bytes_per_s", "slope", FINDINGS_RATE,
			(uint64_t)row->slope_per_s);
	findings_figure(finding, "fit_thousandths", "R²", FINDINGS_SHARE,
			(uint64_t)(row->trend.fit * 1000 + 0.5));
}

// What one function has, by all of its stacks of one verdict that matter.
struct grown {
	struct growth_row row; // the largest, with the sums
	uint64_t largest;
	size_t stacks;
	uint64_t at_exit_bytes;
};

// A row of one verdict as a finding; its sentences are the caller's.
static struct finding *add_row(struct findings *findings, const struct findings_kind *kind,
			       const struct grown *grown, enum findings_sure sure)
{
	const struct growth_row *row = &grown->row;
	const struct query_context_place *place = &findings->asked->places[row->place];
	struct finding *finding = findings_add(findings, kind, sure, place->process, place->stack);

	ASSERT(row->place < findings->asked->places_count);
	finding->from_ns = row->from_ns;
	finding->to_ns = row->to_ns;
	finding->tab = "growth";
	add_figures(finding, row);
	if (grown->stacks > 1)
		findings_figure(finding, "stacks", "stacks", FINDINGS_COUNT, grown->stacks);
	findings_command(findings, finding, "growth", "", false, true);
	return finding;
}

// Whether two places are one function of one process, whatever the callers.
static bool is_same(const struct findings *findings, uint32_t a, uint32_t b)
{
	const struct query_context_place *x = &findings->asked->places[a];
	const struct query_context_place *y = &findings->asked->places[b];

	if (a == b || x->process != y->process)
		return a == b;
	return strcmp(findings_function(findings, x->stack),
		      findings_function(findings, y->stack)) == 0;
}

// Whether two rows are one finding: one function of one process, whatever the callers. Two steps
// are one only if they are at one time.
static bool is_one(const struct findings *findings, const struct growth_row *a,
		   const struct growth_row *b, enum trend_verdict verdict)
{
	uint64_t apart_ns = a->since_ns > b->since_ns ? a->since_ns - b->since_ns
						      : b->since_ns - a->since_ns;

	ASSERT(verdict < TREND_VERDICTS);
	if (verdict == TREND_STEPS && apart_ns > 2 * (a->to_ns - a->from_ns) / GROWTH_BUCKETS)
		return false;
	return is_same(findings, a->place, b->place);
}

// Adds a row to the sum of its function. The worst fit of all counts, and the latest moment since
// when it does not grow: what is said of the sum must hold for each.
static void add_stack(const struct findings *findings, struct grown *grown,
		      const struct growth_row *row)
{
	const struct heap_site *site = site_of(findings, &findings->asked->places[row->place]);
	struct growth_row *sum = &grown->row;
	const struct growth_row before = *sum;

	ASSERT(grown->stacks > 0 || grown->largest == 0);
	grown->stacks++;
	grown->at_exit_bytes += site ? site->live_at_exit.bytes : 0;
	// The largest gives its place, its time and its shape; sums are put back below.
	if (row->trend.grown > grown->largest) {
		grown->largest = row->trend.grown;
		*sum = *row;
	}
	if (grown->stacks == 1)
		return;
	sum->trend.grown = before.trend.grown + row->trend.grown;
	sum->trend.fit = before.trend.fit < row->trend.fit ? before.trend.fit : row->trend.fit;
	sum->slope_per_s = before.slope_per_s + row->slope_per_s;
	sum->grown_count = before.grown_count + row->grown_count;
	sum->live.bytes = before.live.bytes + row->live.bytes;
	sum->live.count = before.live.count + row->live.count;
	sum->since_ns = before.since_ns > row->since_ns ? before.since_ns : row->since_ns;
}

// Growth that is steady goes on: a quarter of what else matters is told of it.
static uint64_t least_of(const struct findings *findings, const struct growth_row *row,
			 enum trend_verdict verdict)
{
	uint64_t least = findings_bytes_min(findings);

	return verdict == TREND_GROWS && row->trend.fit >= STEADY ? least / 4 : least;
}

static bool any_lasts(const struct findings *findings)
{
	const struct query_context *asked = findings->asked;

	for (process_id id = 0; id < reader_processes_count(asked->reader); id++)
		if (query_has_process(&asked->selection.query, id) && findings_lasts(findings, id))
			return true;
	return false;
}

// Of a verdict, those that matter, each reported by `tell`. Rows of one function are one finding: a
// leak that is reached by ten callers is one leak. They are looked for one by one: of what lives at
// one time, some fifty can be a fiftieth. Of brief processes nothing is judged, and that is said
// once.
static bool find_rows(struct findings *findings, const struct findings_kind *kind,
		      enum trend_verdict verdict,
		      void (*tell)(struct findings *findings, const struct findings_kind *kind,
				   const struct grown *grown))
{
	const struct growth_list *list = &findings->facts->growth.lists[verdict];
	struct grown *sums = NULL;
	size_t count = 0, capacity = 0, at;
	bool brief = !any_lasts(findings);

	ASSERT(verdict < TREND_VERDICTS && tell);
	for (size_t i = 0; i < list->count; i++) {
		const struct growth_row *row = &list->rows[i];

		if (row->trend.grown < least_of(findings, row, verdict))
			continue;
		if (!findings_lasts(findings, findings->asked->places[row->place].process)) {
			brief = true;
			continue;
		}
		for (at = 0; at < count && !is_one(findings, &sums[at].row, row, verdict);)
			at++;
		if (at == count)
			*MEM_ADD(sums, count, capacity) = (struct grown){ 0 };
		add_stack(findings, &sums[at], row);
	}
	for (size_t i = 0; i < count; i++)
		tell(findings, kind, &sums[i]);
	mem_free(sums);
	if (brief)
		findings_miss(findings, kind,
			      "of processes that were recorded for less than %d s: they may only "
			      "have built up (--from and --to say when to look)",
			      FINDINGS_LASTING_S);
	if (findings->facts->growth.skipped)
		findings_miss(findings, kind,
			      "of the %zu processes that were left with least (--process says "
			      "which to look at)",
			      findings->facts->growth.skipped);
	return true;
}

// Whether what grew was still there when its process ended, and its figure. If half of what it grew
// by was live then, it counts as not freed. Nothing is said of a sampled recording, of which the
// figure is an estimate.
static const char *ending_of(const struct findings *findings, struct finding *finding,
			     const struct grown *grown, const char *kept, const char *freed)
{
	static const char *const labels[] = { "live at exit", "live at end", "live at cut" };

	if (!site_of(findings, &findings->asked->places[grown->row.place]) ||
	    reader_is_estimated(findings->asked->reader))
		return "";
	findings_figure(finding, "live_at_exit_bytes", labels[query_context_last(findings->asked)],
			FINDINGS_BYTES, grown->at_exit_bytes);
	return grown->at_exit_bytes >= grown->row.trend.grown / 2 ? kept : freed;
}

// One that did not end while it was recorded, or ran for a minute.
static bool is_service(const struct findings *findings, const struct finding *finding)
{
	const struct trace_process *process =
		reader_process(findings->asked->reader, finding->process);

	return process->exit == TRACE_EXIT_UNKNOWN ||
	       process->ended_ns - process->began_ns >= LONG_S * UINT64_C(1000000000);
}

// Likely only if it is steady and of a program that goes on. That a program that ends still builds
// up cannot be told from a leak. R² is that of the floor of the curve, which what comes and goes in
// between does not make worse.
static void tell_growth(struct findings *findings, const struct findings_kind *kind,
			const struct grown *grown_of)
{
	const struct growth_row *row = &grown_of->row;
	bool steady = row->trend.fit >= STEADY;
	struct finding *finding = add_row(findings, kind, grown_of, FINDINGS_POSSIBLE);
	struct str why = { 0 };

	findings_say(&finding->what,
		     "%s keeps more and more: %s more in %s (%s a second), and it was still "
		     "growing at the end.",
		     findings_function(findings, finding->stack), STR_BYTES(row->trend.grown),
		     STR_DURATION(row->to_ns - row->from_ns),
		     STR_BYTES((uint64_t)row->slope_per_s));
	str_format(&why,
		   "%s: R² %.3f of a straight line; of each sixtieth of the time only the "
		   "lowest level counts",
		   steady ? "steady" : "in bursts", row->trend.fit);
	str_add(&why, ending_of(findings, finding, grown_of, "; at the end it was not freed",
				"; at the end it was freed: something still knows all of it"));
	if (steady && is_service(findings, finding))
		finding->sure = FINDINGS_LIKELY;
	else
		str_format(&why, "; a program that builds something up and ends looks the same%s",
			   steady ? "" : ", and so does a cache that is not full yet");
	findings_say(&finding->why, "%s", str_get(&why));
	findings_say(&finding->advice,
		     "find who should let these blocks go: a list that is never emptied, a cache "
		     "without a limit, a reference that is kept");
	finding->saves_bytes = row->trend.grown;
	str_fini(&why);
}

// The last tooth of a saw looks the same, so it is never more than possible.
static void tell_lately(struct findings *findings, const struct findings_kind *kind,
			const struct grown *grown_of)
{
	const struct growth_row *row = &grown_of->row;
	struct finding *finding = add_row(findings, kind, grown_of, FINDINGS_POSSIBLE);

	findings_say(&finding->what, "%s grows since %s: %s more by the end.",
		     findings_function(findings, finding->stack), STR_DURATION(row->since_ns),
		     STR_BYTES(row->trend.grown));
	findings_say(&finding->why, "less than a ninth of it is from the first two thirds of the "
				    "time: it may be a leak that began late, or a phase");
	findings_say(&finding->advice, "record longer; then ask with --from after that moment");
	finding->saves_bytes = row->trend.grown;
}

// Saves nothing: it is listed so that it is not taken for a leak.
static void tell_cache(struct findings *findings, const struct findings_kind *kind,
		       const struct grown *grown_of)
{
	const struct growth_row *row = &grown_of->row;
	struct finding *finding = add_row(findings, kind, grown_of, FINDINGS_LIKELY);

	findings_say(&finding->what,
		     "what %s allocates grew by %s and no more since %s: a cache, a pool, or what "
		     "was loaded.",
		     findings_function(findings, finding->stack), STR_BYTES(row->trend.grown),
		     STR_DURATION(row->since_ns));
	findings_say(&finding->why,
		     "less than a ninth of the growth is in the last third of the time; of growth "
		     "without an end a third would be");
	findings_say(&finding->advice,
		     "nothing, if it is meant to be that large; a limit makes it smaller");
}

// As tell_cache: what happened is certain, and that it is wrong is not said. The curve ends before
// the last twentieth of a process: whether it was there at the end is asked for.
static void tell_step(struct findings *findings, const struct findings_kind *kind,
		      const struct grown *grown_of)
{
	const struct growth_row *row = &grown_of->row;
	struct finding *finding = add_row(findings, kind, grown_of, FINDINGS_CERTAIN);

	findings_say(&finding->what,
		     "what %s allocates became %s more at %s, at once, and stayed%s.",
		     findings_function(findings, finding->stack), STR_BYTES(row->trend.grown),
		     STR_DURATION(row->since_ns),
		     ending_of(findings, finding, grown_of, " until the end",
			       "; most of it was freed as the process ended"));
	findings_say(&finding->why, "one or two rises make three quarters of all by which it grew");
	findings_say(&finding->advice, "nothing, if it is needed from then on");
}

bool findings_growth(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return find_rows(findings, kind, TREND_GROWS, tell_growth);
}

bool findings_growth_lately(struct findings *findings, const struct findings_kind *kind,
			    struct err *)
{
	return find_rows(findings, kind, TREND_RECENT, tell_lately);
}

bool findings_cache(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return find_rows(findings, kind, TREND_LEVELS_OFF, tell_cache);
}

bool findings_step(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	return find_rows(findings, kind, TREND_STEPS, tell_step);
}

// ---- peaks and series ----

// Whether one site is half of a spike.
static bool is_alone(const struct spikes_row *row)
{
	return (uint64_t)row->spike_sites[0].bytes >= row->risen / 2;
}

// What made a spike: its first site, if that is half of it, or all.
static uint64_t made_by(const struct spikes_row *row)
{
	return is_alone(row) ? (uint64_t)row->spike_sites[0].bytes : row->risen;
}

// Whether half of a row or more is of functions that made `of`, too.
static bool is_shared(const struct findings *findings, const struct spikes_row *row,
		      const struct spikes_row *of)
{
	uint64_t shared = 0;

	for (size_t i = 0; i < row->spike_sites_count; i++)
		for (size_t k = 0; k < of->spike_sites_count; k++)
			if (is_same(findings, row->spike_sites[i].place,
				    of->spike_sites[k].place)) {
				shared += (uint64_t)row->spike_sites[i].bytes;
				break;
			}
	return shared > 0 && shared >= row->risen / 2;
}

// Whether a row is `of` once more: by the same functions, most of it.
static bool is_again(const struct findings *findings, const struct spikes_row *row,
		     const struct spikes_row *of)
{
	return row == of ||
	       (!row->cut && is_shared(findings, row, of) && is_shared(findings, of, row));
}

// Edges between which a level is a spike's.
struct part {
	uint64_t from, to;
	uint64_t made; // bytes, by made_by
};

SORT_ORDER(by_begin, struct part, SORT_RISES(from), SORT_RISES(to))

// All of the row, but no more on either side than it is above half its height: if the level goes
// from 0 to 5 at once, ten seconds later to 70 for 100 ms and back to 5, where it stays, then 5 is
// no part of the spike of 70, though it has begun with it.
static struct part part_of(const struct findings *findings, const struct spikes_row *row)
{
	uint64_t tick_ns = reader_info(findings->asked->reader)->tick_ns;
	uint64_t beside_ns = row->half_end_ns - row->half_begin_ns;
	struct part part = { row->begin_edge, row->end_edge, made_by(row) };

	beside_ns = beside_ns > tick_ns ? beside_ns : tick_ns;
	if (row->begin_ns + beside_ns < row->half_begin_ns)
		part.from = window_edge_at(findings->asked->window, row->half_begin_ns - beside_ns);
	if (row->half_end_ns + beside_ns < row->end_ns)
		part.to = window_edge_at(findings->asked->window, row->half_end_ns + beside_ns);
	return part;
}

// What there is beside a spike.
struct beside {
	uint64_t level; // the highest, without those that come again
	size_t times;   // it comes: once, and as often as another one of its site is half as large
};

static bool look_beside(const struct findings *findings, const struct spikes_row *without,
			struct beside *beside, struct err *err)
{
	const struct spikes *spikes = &findings->facts->spikes;
	struct part *parts = mem_alloc(spikes->rows_count + 1, sizeof *parts);
	uint64_t at = findings->asked->from, made = made_by(without);
	size_t count = 0;
	bool ok = true;

	for (size_t i = 0; i < spikes->rows_count; i++)
		if (is_again(findings, &spikes->rows[i], without))
			parts[count++] = part_of(findings, &spikes->rows[i]);
	qsort(parts, count, sizeof *parts, by_begin);
	parts[count] = (struct part){ findings->asked->to, findings->asked->to, 0 };
	// What remains beside these blocks at the peak itself.
	beside->level = spikes->peak > made ? spikes->peak - made : 0;
	beside->times = 0;
	for (size_t i = 0; i <= count && ok; i++) {
		struct query_context_peak peak = { 0 };

		if (parts[i].from >= at) {
			ok = query_context_peak(findings->asked, at, parts[i].from, &peak, err);
			beside->times += parts[i].made > 0 && parts[i].made >= made / 2;
		}
		beside->level = peak.bytes > beside->level ? peak.bytes : beside->level;
		at = parts[i].to > at ? parts[i].to : at;
	}
	mem_free(parts);
	return ok;
}

// The most that a process had in memory or swapped out, as the kernel counted; 0: not known.
static uint64_t had_at_most(const struct findings *findings, process_id id)
{
	const struct trace_process *process = reader_process(findings->asked->reader, id);

	return process->rss_max_bytes ? process->rss_max_bytes + process->swap_max_bytes : 0;
}

// What without the blocks of a spike there would be less. Of those that are mostly never touched,
// as a buffer for the largest case is, not more than the process had: of 200 MiB with 7 in memory
// that is 7.
static uint64_t saves_without(const struct findings *findings, const struct spikes_row *row,
			      const struct beside *beside)
{
	const struct query_context_place *place =
		&findings->asked->places[row->spike_sites[0].place];
	uint64_t had = had_at_most(findings, place->process);
	uint64_t peak = findings->facts->spikes.peak;
	uint64_t saves = peak > beside->level ? peak - beside->level : 0;

	return had && had < saves ? had : saves;
}

// Who made it: "8.0 MiB in 1 block of export", or of many sites "8.0 MiB from 12 stacks (the
// largest part, 2.0 MiB, from parse)". A buffer that was there before and is enlarged is no block
// more.
static void say_peak(const struct findings *findings, struct finding *finding,
		     const struct spikes_row *row)
{
	const struct spikes_maker *maker = &row->spike_sites[0];
	const char *function = findings_function(findings, finding->stack);
	bool one = maker->count == 1 && is_alone(row), below = row->hill.body < row->hill.top;
	struct str made = { 0 };

	if (!is_alone(row))
		str_format(&made, "%s from %s stacks (%s, %s, from %s)", STR_BYTES(row->risen),
			   STR_COUNT(row->spike_sites_count + row->spike_sites_rest),
			   (uint64_t)maker->bytes > row->risen / 2 ? "most of it"
								   : "the largest part",
			   STR_BYTES((uint64_t)maker->bytes), function);
	else if (maker->count > 0)
		str_format(&made, "%s in %s block%s of %s", STR_BYTES((uint64_t)maker->bytes),
			   STR_COUNT((uint64_t)maker->count), one ? "" : "s", function);
	else
		str_format(&made, "%s more in blocks of %s", STR_BYTES((uint64_t)maker->bytes),
			   function);
	findings_say(&finding->what, "%s %s on top of the rest for %s%s the peak of %s%s.",
		     str_get(&made), one ? "comes" : "come",
		     spikes_lasted(row, findings->asked->reader, (char[64]){ 0 }),
		     below ? ", and" : ": that makes", STR_BYTES(row->hill.top),
		     below ? " is on top of that" : "");
	str_fini(&made);
}

// What was never resident saves no memory, however much was asked for: if the process had less in
// memory than these blocks are large, that is said, and the figure is given.
static void tell_peak(struct findings *findings, const struct findings_kind *kind,
		      const struct spikes_row *row, const struct beside *beside)
{
	const struct spikes *spikes = &findings->facts->spikes;
	const struct spikes_maker *maker = &row->spike_sites[0];
	const struct query_context_place *place = &findings->asked->places[maker->place];
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, place->process, place->stack);
	uint64_t had = had_at_most(findings, place->process);
	uint64_t tick_ns = reader_info(findings->asked->reader)->tick_ns, around_ns;
	struct str untouched = { 0 }, again = { 0 };

	ASSERT(row->hill.top == spikes->peak && row->spike_sites_count > 0);
	if (had && had < made_by(row)) {
		str_format(&untouched,
			   "; the process had %s in memory at most: of these blocks no more "
			   "was ever touched",
			   STR_BYTES(had));
		findings_figure(finding, "resident_bytes", "in memory at most", FINDINGS_BYTES,
				had);
	}
	// As long again on both sides, so that it rises and falls in the window, and is a short
	// part of it: what rises within a tick is there already in one that begins with it.
	around_ns = row->end_ns - row->begin_ns < tick_ns ? tick_ns : row->end_ns - row->begin_ns;
	finding->from_ns = row->begin_ns < around_ns ? 0 : row->begin_ns - around_ns;
	finding->to_ns = findings->asked->to_ns - row->end_ns < around_ns ? findings->asked->to_ns
									  : row->end_ns + around_ns;
	finding->saves_bytes = saves_without(findings, row, beside);
	say_peak(findings, finding, row);
	if (beside->times > 1)
		str_format(&again, "such a spike comes %s times; ", STR_COUNT(beside->times));
	findings_say(&finding->why, "measured; %swithout %s the highest level would be %s%s",
		     str_get(&again), beside->times > 1 ? "them" : "it", STR_BYTES(beside->level),
		     str_get(&untouched));
	str_fini(&untouched);
	str_fini(&again);
	findings_say(&finding->advice, "work in parts, or free what is no longer needed before "
				       "these blocks are allocated");
	findings_figure(finding, "peak_bytes", "peak", FINDINGS_BYTES, spikes->peak);
	findings_figure(finding, "rise_bytes", "rise", FINDINGS_BYTES, row->risen);
	findings_figure(finding, "site_bytes", "of this site", FINDINGS_BYTES,
			(uint64_t)maker->bytes);
	findings_figure(finding, "site_count", "blocks", FINDINGS_COUNT,
			maker->count > 0 ? (uint64_t)maker->count : 0);
	findings_figure(finding, "top_ns", "at", FINDINGS_TIME, row->top_ns);
	findings_command(findings, finding, "transients", "", true, false);
}

// Whether a spike, or what several have below them, rises to the peak, far and for a short time.
static bool makes_peak(const struct findings *findings, const struct spikes_row *row)
{
	uint64_t length_ns = findings->asked->to_ns - findings->asked->from_ns;

	return !row->cut && row->hill.top == findings->facts->spikes.peak &&
	       row->spike_sites_count > 0 && row->risen >= row->hill.top / PEAK_RISE_PART &&
	       row->half_end_ns - row->half_begin_ns <= length_ns / PEAK_TIME_PART;
}

// Whether it is one of the first few that make the peak, and not one of them once more.
static bool is_looked_at(const struct findings *findings, size_t number)
{
	const struct spikes *spikes = &findings->facts->spikes;
	size_t others = 0;

	if (!makes_peak(findings, &spikes->rows[number]))
		return false;
	for (size_t i = 0; i < number && others < PEAK_OTHERS_MAX; i++) {
		if (!makes_peak(findings, &spikes->rows[i]))
			continue;
		if (is_again(findings, &spikes->rows[number], &spikes->rows[i]))
			return false;
		others++;
	}
	return others < PEAK_OTHERS_MAX;
}

// One finding: the peak is one moment. Of what lies in each other there, that is told which would
// save most: of a hill of 200 MiB with one of 60 on it, the hill.
bool findings_peak(struct findings *findings, const struct findings_kind *kind, struct err *err)
{
	const struct spikes *spikes = &findings->facts->spikes;
	const struct spikes_row *most = NULL;
	struct beside most_beside = { 0 };
	uint64_t most_saves = 0;

	for (size_t i = 0; i < spikes->rows_count; i++) {
		const struct spikes_row *row = &spikes->rows[i];
		struct beside beside;
		uint64_t saves;

		if (!is_looked_at(findings, i))
			continue;
		if (!look_beside(findings, row, &beside, err))
			return false;
		saves = saves_without(findings, row, &beside);
		if (saves <= most_saves)
			continue;
		most = row;
		most_beside = beside;
		most_saves = saves;
	}
	if (most != NULL && most_saves >= findings_bytes_min(findings))
		tell_peak(findings, kind, most, &most_beside);
	return true;
}

// The series of one function that matter, by all of its stacks.
struct reused {
	const char *function;
	struct spikes_series series; // the first, with the sums of those of its size
	size_t stacks;               // of that size
	uint64_t saves_calls;
	size_t sizes; // others
};

// Adds a series to those of its function. The list has those first that would save most. All
// buffers but one would be saved, and with each an allocation and a free. Other sizes are only
// counted: the finding is of the first, which would save most.
static void add_series(struct reused *reused, const struct spikes_series *series)
{
	struct spikes_series *sum = &reused->series;

	if (reused->stacks > 0 && series->size != sum->size) {
		reused->sizes++;
		return;
	}
	if (reused->stacks++ == 0) {
		*sum = *series;
	} else {
		sum->count += series->count;
		if (series->first_ns < sum->first_ns)
			sum->first_ns = series->first_ns;
		if (series->last_ns > sum->last_ns)
			sum->last_ns = series->last_ns;
	}
	reused->saves_calls += 2 * (series->count - 1);
}

static void tell_reuse(struct findings *findings, const struct findings_kind *kind,
		       const struct reused *reused)
{
	const struct spikes_series *series = &reused->series;
	const struct query_context_place *place = &findings->asked->places[series->place];
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, place->process, place->stack);
	struct str from = { 0 }, more = { 0 };

	ASSERT(reused->stacks > 0);
	if (reused->stacks > 1)
		str_format(&from, " from %s stacks, of each", STR_COUNT(reused->stacks));
	if (reused->sizes > 0)
		str_format(&more, " (and the same of %s other size%s)", STR_COUNT(reused->sizes),
			   reused->sizes == 1 ? "" : "s");
	findings_say(&finding->what,
		     "%s allocates a buffer of %s %s times,%s never two at a time%s.",
		     reused->function, STR_BYTES(series->size), STR_COUNT(series->count),
		     str_get(&from), str_get(&more));
	findings_say(&finding->why, "measured: no two of that size%s lived at the same time",
		     reused->stacks > 1 ? " and stack" : "");
	findings_say(&finding->advice, "allocate it once and keep it; beyond 128 KiB each one may "
				       "be a mapping of its own, to be touched again");
	findings_figure(finding, "size_bytes", "each", FINDINGS_BYTES, series->size);
	findings_figure(finding, "count", "times", FINDINGS_COUNT, series->count);
	findings_figure(finding, "first_ns", "first", FINDINGS_TIME, series->first_ns);
	findings_figure(finding, "last_ns", "last", FINDINGS_TIME, series->last_ns);
	if (reused->stacks > 1)
		findings_figure(finding, "stacks", "stacks", FINDINGS_COUNT, reused->stacks);
	finding->saves_calls = reused->saves_calls;
	finding->saves_size = series->size;
	findings_command(findings, finding, "transients", "", false, true);
	STR_FINI(&from, &more);
}

// Series of one function are one finding, of its most costly size.
bool findings_reuse(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct spikes *spikes = &findings->facts->spikes;
	const struct query_context_place *places = findings->asked->places;
	struct reused *list = NULL;
	size_t count = 0, capacity = 0, at;

	for (size_t i = 0; i < spikes->series_count; i++) {
		const struct spikes_series *series = &spikes->series[i];
		const struct query_context_place *place = &places[series->place];
		const char *function;

		if (series->count < REUSE_COUNT_MIN || series->size < REUSE_SIZE_MIN)
			continue;
		function = findings_function(findings, place->stack);
		// Stacks of one function have a text each.
		for (at = 0; at < count; at++)
			if (places[list[at].series.place].process == place->process &&
			    strcmp(list[at].function, function) == 0)
				break;
		if (at == count)
			*MEM_ADD(list, count, capacity) = (struct reused){ .function = function };
		add_series(&list[at], series);
	}
	for (size_t i = 0; i < count; i++)
		tell_reuse(findings, kind, &list[i]);
	mem_free(list);
	return true;
}
