// Two questions make groups. The first gives every value of the key a number and its sums; the
// second, where levels are drawn, looks at the first two hundred in sixteen buckets of time, since
// what passed through a function is not what it held: a function with 1 GiB of short blocks of 1
// KiB each has a curve of 1 KiB. The heaviest `curves_max` have curves of their own and all others
// share one.
#include "report/draw/plot.h"

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "report/draw/plot_keys.h"
#include "report/draw/plot_parts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = 200, LOOK_BUCKETS = 16 };

const char *const plot_kind_words[PLOT_KINDS + 1] = {
	[PLOT_LIVE] = "live",
	[PLOT_BLOCKS] = "blocks",
	[PLOT_CUMULATIVE] = "cumulative",
	[PLOT_RATE] = "rate",
	[PLOT_RSS] = "rss",
	[PLOT_FAULTS] = "faults",
	[PLOT_SIZES] = "sizes",
	[PLOT_LIFETIMES] = "lifetimes",
	[PLOT_LARGEST_FREE] = "largest-free",
	[PLOT_FRAGMENTATION] = "fragmentation",
};

const char *const plot_key_words[PLOT_KEYS + 1] = {
	[PLOT_BY_NOTHING] = "none",  [PLOT_BY_PROCESS] = "process",   [PLOT_BY_HEAP] = "heap",
	[PLOT_BY_THREAD] = "thread", [PLOT_BY_OWNER] = "owner",       [PLOT_BY_MODULE] = "module",
	[PLOT_BY_STACK] = "stack",   [PLOT_BY_FUNCTION] = "function",
};

// ---- groups: the values of the key that have most ----

static uint32_t by_value(void *context, const struct window_cell *cell)
{
	struct plot_groups *groups = context;

	if (!query_context_selects(groups->keys.asked, cell))
		return WINDOW_SKIP;
	return plot_keys_of(&groups->keys, cell);
}

// The others are group `count`. While candidates are weighed, a value that is none of them has the
// rank UINT32_MAX, which is WINDOW_SKIP: it is left out of that question.
static uint32_t by_rank(void *context, const struct window_cell *cell)
{
	struct plot_groups *groups = context;
	uint32_t value = by_value(context, cell);

	if (value == WINDOW_SKIP)
		return WINDOW_SKIP;
	return value < groups->ranks_count ? groups->ranks[value] : groups->count;
}

struct ranked {
	uint32_t value;
	uint64_t weight;
};

SORT_ORDER(heavier_first, struct ranked, SORT_FALLS(weight), SORT_RISES(value))

// Order the first `count` by what they reach at most, in bytes or blocks, instead of by what passed
// through them.
static bool weigh_by_peak(struct plot_groups *groups, struct window_query query, bool blocks,
			  struct ranked *ranked, size_t count, struct err *err)
{
	struct window_bucket *buckets = mem_alloc(count * LOOK_BUCKETS, sizeof *buckets);
	bool good;

	ASSERT(count > 1 && count <= groups->ranks_count);
	for (size_t i = 0; i < count; i++)
		groups->ranks[ranked[i].value] = (uint32_t)i;
	groups->count = (uint32_t)count;
	query.group = by_rank;
	good = window_series(groups->keys.asked->window, &query, count, buckets, LOOK_BUCKETS, err);
	for (size_t i = 0; i < count && good; i++) {
		ranked[i].weight = 0;
		for (size_t k = 0; k < LOOK_BUCKETS; k++) {
			const struct window_bucket *bucket = &buckets[i * LOOK_BUCKETS + k];
			uint64_t peak = blocks ? bucket->count_peak : bucket->bytes_peak;

			if (peak > ranked[i].weight)
				ranked[i].weight = peak;
		}
	}
	if (good)
		qsort(ranked, count, sizeof *ranked, heavier_first);
	mem_free(buckets);
	return good;
}

// What passed through a value of the key, in what the kind draws.
static uint64_t passed(const struct window_row *row, enum plot_kind kind)
{
	if (kind == PLOT_BLOCKS)
		return window_present(row).count;
	return kind == PLOT_LIVE ? window_present(row).bytes : window_allocated(row).bytes;
}

// Ranks all values of the key by what passed through them, then, for levels, the first 200 of these
// by the most that they had at once; the first `curves_max` of that order get a curve. For example
// 1,000 functions and `curves_max` 7: the 200 that most passed through are weighed, the 7 that
// reached most get groups 0 to 6, and all 993 others are group 7. A value outside of the 200 comes
// after all of them, however much it held at once.
bool plot_groups_find(struct plot_groups *groups, struct query_context *asked,
		      const struct plot_options *options, struct err *err)
{
	struct window_query query = plot_query(asked, groups, by_value);
	struct window_result result;
	struct ranked *ranked;
	size_t candidates = 0;
	bool levels = options->kind == PLOT_LIVE || options->kind == PLOT_BLOCKS;
	bool good = true;

	plot_keys_init(&groups->keys, asked, options->key);
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	ranked = mem_alloc(result.rows_count + 1, sizeof *ranked);
	groups->ranks = mem_alloc(result.rows_count + 1, sizeof *groups->ranks);
	groups->ranks_count = result.rows_count;
	for (uint32_t value = 0; value < result.rows_count; value++) {
		const struct window_row *row = &result.rows[value];

		// What had nothing in the window is no candidate, and none of the others.
		groups->ranks[value] = UINT32_MAX;
		if (window_present(row).count > 0)
			ranked[candidates++] = (struct ranked){ value, passed(row, options->kind) };
	}
	window_result_fini(&result);
	qsort(ranked, candidates, sizeof *ranked, heavier_first);
	if (candidates > 1 && levels)
		good = weigh_by_peak(groups, query, options->kind == PLOT_BLOCKS, ranked,
				     candidates < CANDIDATES_MAX ? candidates : CANDIDATES_MAX,
				     err);
	groups->values = candidates;
	groups->count =
		(uint32_t)(candidates < options->curves_max ? candidates : options->curves_max);
	groups->order = mem_alloc(groups->count + 1, sizeof *groups->order);
	for (uint32_t value = 0; value < groups->ranks_count; value++)
		groups->ranks[value] = groups->count;
	for (uint32_t i = 0; i < groups->count; i++) {
		groups->order[i] = ranked[i].value;
		groups->ranks[ranked[i].value] = i;
	}
	mem_free(ranked);
	return good;
}

void plot_groups_fini(struct plot_groups *groups)
{
	plot_keys_fini(&groups->keys);
	MEM_FREE(groups->ranks, groups->order);
	*groups = (struct plot_groups){ 0 };
}

size_t plot_groups_curves(const struct plot_groups *groups)
{
	return groups->count + (groups->values > groups->count);
}

const char *plot_groups_name(const struct plot_groups *groups, size_t curve, char out[static 40])
{
	ASSERT(curve < plot_groups_curves(groups));
	if (curve < groups->count)
		return groups->keys.names[groups->order[curve]];
	strcpy(out, STR_COUNT(groups->values - groups->count));
	strcat(out, groups->values - groups->count == 1 ? " other" : " others");
	return out;
}

void plot_groups_mark_rest(const struct plot_groups *groups, struct chart *chart)
{
	if (groups->values > groups->count && chart->curves_count > groups->count)
		chart->curves[groups->count].rest = true;
}

// Edges and times are both of the window: series are cut into buckets by time.
struct window_query plot_query(struct query_context *asked, struct plot_groups *groups,
			       uint32_t (*group)(void *, const struct window_cell *))
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);

	query.from_ns = asked->from_ns;
	query.to_ns = asked->to_ns;
	if (group) {
		query.group = group;
		query.context = groups;
		query.by_thread |= groups->keys.key == PLOT_BY_THREAD;
	}
	return query;
}

struct window_query plot_groups_query(struct plot_groups *groups)
{
	return plot_query(groups->keys.asked, groups, by_rank);
}

// ---- what all have in common ----

// A rate by the pixel is noise.
enum { RATE_BUCKET_PIXELS = 6 };

// The subtitle says what a reader of the picture alone must know: of which time, by what, filtered
// or not, and the warnings.
static void set_title(struct chart *chart, const struct query_context *asked,
		      const struct plot_options *options, const char *what)
{
	const struct trace_info *info = reader_info(asked->reader);
	struct str text = { 0 };
	char whole[24];

	str_add(&text, what);
	if (info->command[0])
		str_format(&text, ": %s", info->command);
	chart->title = str_take(&text);
	str_duration(moment_duration(asked->reader), whole);
	if (options->window)
		str_format(&text, "%s, %s of %s", options->window,
			   STR_DURATION(asked->to_ns - asked->from_ns), whole);
	else
		str_format(&text, "the whole recording, %s", whole);
	if (options->key != PLOT_BY_NOTHING)
		str_format(&text, "; by %s", plot_key_words[options->key]);
	if (query_narrows(&asked->selection.query))
		str_add(&text, "; filtered");
	// The first in full, of the others what they are about.
	for (size_t i = 0; i < asked->warnings_count; i++)
		str_format(&text, "; %.*s",
			   i > 0 ? (int)strcspn(asked->warnings[i], ":,;") : INT_MAX,
			   asked->warnings[i]);
	chart->subtitle = str_take(&text);
}

static void add_marks(struct chart *chart, const struct query_context *asked)
{
	size_t count;
	const struct window_mark *marks = window_marks(asked->window, &count);

	for (size_t i = 0; i < count; i++)
		if (marks[i].edge >= asked->from && marks[i].edge <= asked->to &&
		    marks[i].time_ns >= asked->from_ns && marks[i].time_ns <= asked->to_ns)
			chart_add_mark(chart, (double)marks[i].time_ns, marks[i].name);
}

// Resident memory, faults, holes and what heaps are made of are of whole processes.
static const struct query_context_rules whole_rules = {
	.about = QUERY_CONTEXT_WINDOW,
	.one_layer = true,
	.refused = ((1u << SELECTION_KINDS) - 1) &
		   ~(SELECTION_BIT(PROCESS) | SELECTION_BIT(FROM) | SELECTION_BIT(TO)),
	.refusal = "selects allocations, and this is drawn of whole processes (it takes --process, "
		   "--from and --to; try: tidemark plot live)",
	.exit_frees = true,
};

const struct query_context_rules *plot_rules(enum plot_kind kind)
{
	bool whole = kind == PLOT_RSS || kind == PLOT_FAULTS || kind == PLOT_LARGEST_FREE ||
		     kind == PLOT_FRAGMENTATION;

	ASSERT(kind < PLOT_KINDS);
	return whole ? &whole_rules : &query_context_findings_rules;
}

// What cannot be drawn is refused before it is made: a key that the kind does not have, a window of
// no length, filters that match nothing.
bool plot_make(struct chart *chart, struct query_context *asked, const struct plot_options *options,
	       struct err *err)
{
	static const struct {
		bool (*make)(struct chart *, struct query_context *, const struct plot_options *,
			     struct err *);
		const char *title;
		bool over_time, keyed;
	} kinds[PLOT_KINDS] = {
		[PLOT_LIVE] = { plot_time_live, "live memory", true, true },
		[PLOT_BLOCKS] = { plot_time_live, "live blocks", true, true },
		[PLOT_CUMULATIVE] = { plot_time_flow, "memory allocated so far", true, true },
		[PLOT_RATE] = { plot_time_flow, "allocation rate", true, true },
		[PLOT_RSS] = { plot_time_rss, "resident memory", true, false },
		[PLOT_FAULTS] = { plot_time_faults, "page faults", true, false },
		[PLOT_SIZES] = { plot_sizes, "sizes of allocations", false, true },
		[PLOT_LIFETIMES] = { plot_lifetimes, "lifetimes by size", false, false },
		[PLOT_LARGEST_FREE] = { plot_time_holes, "largest hole in the address space", true,
					false },
		[PLOT_FRAGMENTATION] = { plot_time_heaps, "what the heap has, and what lives in it",
					 true, false },
	};
	struct plot_options chosen = *options;

	*chart = (struct chart){ 0 };
	if (chosen.kind == PLOT_RATE || chosen.kind == PLOT_FAULTS)
		chosen.buckets = (chosen.buckets + RATE_BUCKET_PIXELS - 1) / RATE_BUCKET_PIXELS;
	if (options->key != PLOT_BY_NOTHING && !kinds[options->kind].keyed)
		return err_set(err, ERR_USAGE, "%s cannot be drawn by a key",
			       plot_kind_words[options->kind]);
	if (kinds[options->kind].over_time && asked->from_ns >= asked->to_ns)
		return err_set(err, ERR_USAGE,
			       "the window has no length: there is no time to draw");
	if (!query_context_match(asked, err))
		return false;
	set_title(chart, asked, options, kinds[options->kind].title);
	if (kinds[options->kind].over_time) {
		chart->x = (struct chart_axis){ .label = "time",
						.unit = CHART_TIME,
						.low = (double)asked->from_ns,
						.high = (double)asked->to_ns };
		add_marks(chart, asked);
	}
	return kinds[options->kind].make(chart, asked, &chosen, err);
}
