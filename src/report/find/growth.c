// The time in which a process is judged is its own, less a tenth at its start and a twentieth at
// its end, where the window does not say otherwise. For example a process that ran from 0 to 100
// s:
//
//     no window      10 s to 95 s, in 60 buckets of 1.42 s
//     --from 20s     20 s to 96 s: the user's word is taken as it is, and a twentieth of 80 s goes
//     --to 90s       9 s to 90 s: a tenth of 90 s goes, and nothing at the end
//
// Places are asked for in two steps, since a series for each would be large: what began and what
// ended in that time says for all of them how much they grew, and only those that grew most have a
// series made.
#include "report/find/growth.h"

#include "base/mem.h"
#include "base/sort.h"
#include "engine/shelf.h"

#include <stdlib.h>

// What is left out at the start and at the end, as parts of the process's time.
enum { WARM_UP_PART = 10, TEAR_DOWN_PART = 20 };

const char *growth_key(enum trend_verdict verdict)
{
	static const char *const keys[TREND_VERDICTS] = {
		[TREND_STEADY] = "steady", [TREND_GROWS] = "grows",
		[TREND_RECENT] = "recent", [TREND_LEVELS_OFF] = "levels_off",
		[TREND_STEPS] = "steps",
	};

	ASSERT(verdict < TREND_VERDICTS);
	return keys[verdict];
}

// ---- which processes, and when ----

// Of a process that is judged.
struct span {
	process_id process;
	uint64_t from_ns, to_ns;
	uint64_t from, to; // edges
	uint64_t kept;     // bytes that it was left with
};

// The time of a process in the window, less its start and end.
static bool find_span(struct query_context *asked, process_id id, struct span *span)
{
	const struct trace_process *process = reader_process(asked->reader, id);
	uint64_t duration_ns = window_facts(asked->window)->duration_ns;
	uint64_t ended_ns = process->ended_ns < duration_ns ? process->ended_ns : duration_ns;
	bool own_from = !asked->from_given || process->began_ns > asked->from_ns;
	bool own_to = !asked->to_given || ended_ns <= asked->to_ns;
	uint64_t from_ns = own_from ? process->began_ns : asked->from_ns;
	uint64_t to_ns = own_to ? ended_ns : asked->to_ns;
	uint64_t length_ns = to_ns > from_ns ? to_ns - from_ns : 0;

	if (own_from && asked->from_ns > from_ns)
		from_ns = asked->from_ns;
	*span = (struct span){
		.process = id,
		.from_ns = from_ns + (own_from ? length_ns / WARM_UP_PART : 0),
		.to_ns = to_ns - (own_to ? length_ns / TEAR_DOWN_PART : 0),
	};
	if (span->to_ns < span->from_ns + GROWTH_BUCKETS ||
	    (own_from && own_to && length_ns < GROWTH_LIFE_MIN_MS * UINT64_C(1000000)))
		return false;
	// A mark's edge is exact; a time's is where the time says.
	span->from = own_from ? window_edge_at(asked->window, span->from_ns) : asked->from;
	span->to = own_to ? window_edge_at(asked->window, span->to_ns) : asked->to;
	return span->to > span->from;
}

// As window_ask wants it: the group of a cell, or that it is left out.
static uint32_t by_process(void *context, const struct window_cell *cell)
{
	return query_context_selects(context, cell) ? cell->process : WINDOW_SKIP;
}

SORT_ORDER(by_kept, struct span, SORT_FALLS(kept), SORT_RISES(process))

// The processes to be judged, those first that were left with most.
// *spans is the caller's to free. A process that held nothing is not counted as too brief.
static bool find_spans(struct growth *growth, struct query_context *asked, struct span **spans,
		       size_t *count, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct window_result result;

	query.exit_frees = false;
	query.group = by_process;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	*spans = mem_alloc(result.rows_count + (size_t)1, sizeof **spans);
	*count = 0;
	for (process_id id = 0; id < result.rows_count; id++) {
		const struct window_row *row = &result.rows[id];
		struct span *span = &(*spans)[*count];

		if (window_present(row).count == 0)
			continue;
		if (!find_span(asked, id, span)) {
			growth->brief++;
			continue;
		}
		span->kept = window_sum(row->type[WINDOW_AIFO], row->type[WINDOW_AOFO]).bytes;
		++*count;
	}
	window_result_fini(&result);
	qsort(*spans, *count, sizeof **spans, by_kept);
	return true;
}

// ---- the places of one process ----

// A place that has grown by enough between the two ends of the span. `grown` is in bytes.
struct candidate {
	uint32_t place;
	int64_t grown, grown_count;
	struct heap_amount live;
};

struct judging {
	struct growth *growth;
	struct query_context *asked;
	const struct span *span;
	struct candidate *candidates;
	size_t count;
	uint32_t *numbers; // by place: candidate + 1
	size_t places_count;
};

// All places of the process.
static uint32_t by_place(void *context, const struct window_cell *cell)
{
	struct judging *judging = context;

	if (cell->process != judging->span->process || !query_context_selects(judging->asked, cell))
		return WINDOW_SKIP;
	return query_context_place(judging->asked, cell->process, cell->stack);
}

// Those that may have grown.
static uint32_t by_candidate(void *context, const struct window_cell *cell)
{
	struct judging *judging = context;
	uint32_t place;

	if (cell->process != judging->span->process || !query_context_selects(judging->asked, cell))
		return WINDOW_SKIP;
	place = query_context_place(judging->asked, cell->process, cell->stack);
	return place < judging->places_count && judging->numbers[place]
		       ? judging->numbers[place] - 1
		       : WINDOW_SKIP;
}

// Over the span of the process that is judged, in edges and in ns: series are cut into buckets by
// ns.
static struct window_query query_of(struct judging *judging,
				    uint32_t (*group)(void *, const struct window_cell *))
{
	struct window_query query = query_context_query(judging->asked, QUERY_CONTEXT_ALL,
							judging->span->from, judging->span->to);

	query.from_ns = judging->span->from_ns;
	query.to_ns = judging->span->to_ns;
	query.group = group;
	query.context = judging;
	return query;
}

SORT_ORDER(compare_growth, struct candidate, SORT_FALLS(grown), SORT_RISES(place))

static int by_growth(const void *a, const void *b, void *)
{
	return compare_growth(a, b);
}

// Those that have grown by grown_min over the span, at most GROWTH_PLACES_MAX, the largest first.
// Series are made of these alone, which are few of all places. A place that fell back before the
// end of the span is none: it cannot be one that grows to the end.
static bool find_candidates(struct judging *judging, struct err *err)
{
	struct window_query query = query_of(judging, by_place);
	struct window_result result;

	query.edges_only = true;
	if (!window_ask(judging->asked->window, &query, &result, err))
		return false;
	judging->candidates = mem_alloc(result.rows_count + (size_t)1, sizeof *judging->candidates);
	for (uint32_t g = 0; g < result.rows_count; g++) {
		const struct window_row *row = &result.rows[g];
		const struct candidate candidate = {
			.place = g,
			.grown = window_impact(row),
			.grown_count = (int64_t)(row->type[WINDOW_AIFO].count -
						 row->type[WINDOW_AOFI].count),
			.live = window_sum(row->type[WINDOW_AIFO], row->type[WINDOW_AOFO]),
		};

		judging->growth->live = window_sum(judging->growth->live, candidate.live);
		if (candidate.grown >= (int64_t)judging->growth->grown_min)
			judging->candidates[judging->count++] = candidate;
	}
	window_result_fini(&result);
	mem_sort_first(judging->candidates, judging->count,
		       judging->count < GROWTH_PLACES_MAX ? judging->count : GROWTH_PLACES_MAX,
		       sizeof *judging->candidates, by_growth, NULL);
	if (judging->count > GROWTH_PLACES_MAX) {
		judging->growth->places_skipped += judging->count - GROWTH_PLACES_MAX;
		judging->count = GROWTH_PLACES_MAX;
	}
	ASSERT(judging->count <= GROWTH_PLACES_MAX);
	judging->places_count = judging->asked->places_count;
	judging->numbers = mem_alloc(judging->places_count + 1, sizeof *judging->numbers);
	for (uint32_t i = 0; i < judging->count; i++)
		judging->numbers[judging->candidates[i].place] = i + 1;
	return true;
}

// When the floor did what the verdict speaks of.
static uint64_t find_since(const struct growth_row *row, const uint64_t *floor)
{
	uint64_t first = floor[0], grown = row->trend.grown;
	uint64_t highest = 0;
	size_t at = 0;

	// Of steps the largest; of late growth the first rise; of what levelled off, when nineteen
	// of twenty parts of it were there.
	for (size_t i = 1; i < GROWTH_BUCKETS; i++) {
		if (row->trend.verdict == TREND_STEPS && floor[i] - floor[i - 1] > highest) {
			highest = floor[i] - floor[i - 1];
			at = i;
		}
		if (row->trend.verdict == TREND_RECENT && at == 0 && floor[i] > first)
			at = i;
		if (row->trend.verdict == TREND_LEVELS_OFF && at == 0 &&
		    floor[i] - first >= grown - grown / 20)
			at = i;
	}
	ASSERT(at < GROWTH_BUCKETS);
	return row->from_ns +
	       (uint64_t)((unsigned __int128)(row->to_ns - row->from_ns) * at / GROWTH_BUCKETS);
}

// The lows of its buckets go to engine/trend.h. Its slope is in bytes per bucket, and here it
// becomes bytes per second: 60 buckets of a span of 30 s are 2 buckets a second.
static void judge(struct judging *judging, const struct candidate *candidate,
		  const struct window_bucket *buckets)
{
	const struct query_context *asked = judging->asked;
	const struct span *span = judging->span;
	struct growth_row row = {
		.place = candidate->place,
		.from_ns = span->from_ns,
		.to_ns = span->to_ns,
		.grown_count = candidate->grown_count,
		.live = candidate->live,
	};
	uint64_t floor[GROWTH_BUCKETS], level = buckets[GROWTH_BUCKETS - 1].bytes_end;
	struct growth_list *list;

	for (size_t i = 0; i < GROWTH_BUCKETS; i++)
		row.lows[i] = buckets[i].bytes_low;
	// The series is of the samples: each stands for as much as those at its end do together.
	for (size_t i = 0; level && reader_is_estimated(asked->reader) && i < GROWTH_BUCKETS; i++)
		row.lows[i] =
			(uint64_t)((unsigned __int128)row.lows[i] * candidate->live.bytes / level);
	row.trend = trend_judge(row.lows, GROWTH_BUCKETS, judging->growth->grown_min, floor);
	if (row.trend.verdict == TREND_STEADY)
		return;
	ASSERT(span->to_ns > span->from_ns);
	row.slope_per_s =
		row.trend.slope * GROWTH_BUCKETS * 1e9 / (double)(span->to_ns - span->from_ns);
	row.since_ns = find_since(&row, floor);
	ASSERT(row.trend.verdict < TREND_VERDICTS);
	list = &judging->growth->lists[row.trend.verdict];
	*MEM_ADD(list->rows, list->total, list->capacity) = row;
	list->slope_per_s += row.slope_per_s;
	list->grown += row.trend.grown;
}

// One pass over the index for the candidates, one for all their series together.
static bool judge_process(struct growth *growth, struct query_context *asked,
			  const struct span *span, struct err *err)
{
	struct judging judging = { .growth = growth, .asked = asked, .span = span };
	struct window_bucket *buckets = NULL;
	struct window_query query = query_of(&judging, by_candidate);
	bool ok = find_candidates(&judging, err);

	if (ok && judging.count) {
		buckets = mem_alloc(judging.count * GROWTH_BUCKETS, sizeof *buckets);
		ok = window_series(asked->window, &query, judging.count, buckets, GROWTH_BUCKETS,
				   err);
		for (size_t i = 0; ok && i < judging.count; i++)
			judge(&judging, &judging.candidates[i], buckets + i * GROWTH_BUCKETS);
	}
	MEM_FREE(buckets, judging.candidates, judging.numbers);
	return ok;
}

// ---- all ----

SORT_ORDER(compare_rows, struct growth_row,
	   (one->trend.verdict == TREND_GROWS ? SORT_FALLS(slope_per_s) : 0),
	   SORT_FALLS(trend.grown), SORT_RISES(place))

// Each process is judged by itself, over the time that it ran in the window; of very many only the
// GROWTH_PROCESSES_MAX that were left with most, and the others are counted (`skipped`).
static bool judge_all(struct growth *growth, struct query_context *asked, struct err *err)
{
	struct span *spans = NULL;
	size_t count;
	bool ok;

	ok = query_context_match(asked, err) && find_spans(growth, asked, &spans, &count, err);
	if (!ok)
		return false;
	growth->processes = count < GROWTH_PROCESSES_MAX ? count : GROWTH_PROCESSES_MAX;
	growth->skipped = count - growth->processes;
	if (growth->processes == 1) {
		growth->from_ns = spans[0].from_ns;
		growth->to_ns = spans[0].to_ns;
	}
	for (size_t i = 0; ok && i < growth->processes; i++)
		ok = judge_process(growth, asked, &spans[i], err);
	mem_free(spans);
	for (int v = 0; v < TREND_VERDICTS; v++) {
		struct growth_list *list = &growth->lists[v];

		if (list->total)
			qsort(list->rows, list->total, sizeof *list->rows, compare_rows);
	}
	return ok;
}

bool growth_find(struct growth *growth, struct query_context *asked,
		 const struct growth_options *options, struct err *err)
{
	struct shelf shelf = { 0 };
	bool keep, kept, ok;

	ASSERT(asked->window);
	*growth = (struct growth){
		.grown_min = options->grown_min ? options->grown_min : GROWTH_BYTES_MIN,
	};
	keep = options->keep && growth_kept_find(&shelf, growth, asked);
	kept = keep && growth_take_kept(&shelf, growth, asked);
	ok = kept || judge_all(growth, asked, err);
	if (ok && keep && !kept)
		growth_keep(&shelf, growth, asked);
	for (int v = 0; v < TREND_VERDICTS; v++) {
		struct growth_list *list = &growth->lists[v];

		list->count = options->rows_max && options->rows_max < list->total
				      ? (size_t)options->rows_max
				      : list->total;
	}
	shelf_fini(&shelf);
	if (!ok)
		growth_fini(growth);
	return ok;
}

void growth_fini(struct growth *growth)
{
	for (int v = 0; v < TREND_VERDICTS; v++)
		mem_free(growth->lists[v].rows);
	*growth = (struct growth){ 0 };
}
