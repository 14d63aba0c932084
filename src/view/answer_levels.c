// Levels over time, as buckets.
//
// For example heap, from 0 to 8 s in 4 buckets: "peak_bytes": [10,30,30,20] has the highest level
// of each two seconds, "low_bytes" the lowest, "end_bytes" that at their ends. A curve that is
// drawn of the peaks and the lows shows each spike, however narrow it is.
#include "view/answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "engine/window_series.h"
#include "report/draw/plot.h"

#include <math.h>

enum layer { LAYER_HEAP, LAYER_VM, LAYER_RSS, LAYER_CUMULATIVE, LAYER_LARGEST_FREE };

static const char *const layer_words[] = { "heap", "vm", "rss", "cumulative", NULL };
_Static_assert(sizeof layer_words / sizeof *layer_words == LAYER_LARGEST_FREE + 1,
	       "a word each but the last, and the end");

struct levels {
	struct query_context asked;
	enum layer layer;
	size_t buckets;
	uint64_t start_bytes;
};

// ---- the answer ----

static void begin(const struct levels *levels, struct json *json, struct sink *sink)
{
	json_begin(json, sink, false, "tidemark-view-timeline-1");
	json_kv_string(json, "layer",
		       levels->layer == LAYER_LARGEST_FREE ? "largest-free"
							   : layer_words[levels->layer]);
	json_kv_u64(json, "from_ns", levels->asked.from_ns);
	json_kv_u64(json, "to_ns", levels->asked.to_ns);
	json_kv_u64(json, "buckets", levels->buckets);
}

// One figure of each bucket: the one that lies `at` bytes behind its beginning.
static void write_column(struct json *json, const char *key, const struct window_bucket *buckets,
			 size_t count, size_t at)
{
	ASSERT(at <= sizeof *buckets - sizeof(uint64_t));
	json_kv_array(json, key);
	for (size_t i = 0; i < count; i++)
		// All figures of a bucket are of 64 bits, so a column is an offset.
		json_u64(json, *(const uint64_t *)((const char *)&buckets[i] + at));
	json_array_end(json);
}

static void write_levels(const struct levels *levels, const struct window_bucket *buckets,
			 struct sink *sink)
{
	struct json json;

	begin(levels, &json, sink);
	write_column(&json, "peak_bytes", buckets, levels->buckets,
		     offsetof(struct window_bucket, bytes_peak));
	write_column(&json, "low_bytes", buckets, levels->buckets,
		     offsetof(struct window_bucket, bytes_low));
	write_column(&json, "most_count", buckets, levels->buckets,
		     offsetof(struct window_bucket, count_peak));
	write_column(&json, "end_bytes", buckets, levels->buckets,
		     offsetof(struct window_bucket, bytes_end));
	json_kv_u64(&json, "start_bytes", levels->start_bytes);
	json_end(&json);
}

// Levels where some buckets know nothing: negative.
// A member that the layer does not have is null, so that the page asks for all layers alike.
static void write_known(const struct levels *levels, const double *values, struct sink *sink)
{
	struct json json;

	begin(levels, &json, sink);
	json_kv_array(&json, "peak_bytes");
	for (size_t i = 0; i < levels->buckets; i++) {
		if (values[i] < 0)
			json_null(&json);
		else
			json_u64(&json, (uint64_t)llround(values[i]));
	}
	json_array_end(&json);
	json_kv_string(&json, "low_bytes", NULL);
	json_kv_string(&json, "most_count", NULL);
	json_kv_string(&json, "end_bytes", NULL);
	json_kv_string(&json, "start_bytes", NULL);
	json_end(&json);
}

// ---- heap, vm ----

// Buckets divide the time that was asked for, whose ends may lie before and after the first and
// last edge of the window.
static struct window_query query_of(struct levels *levels)
{
	struct query_context *asked = &levels->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);

	query.from_ns = asked->from_ns;
	query.to_ns = asked->to_ns;
	return query;
}

// Without filters the index has the timeline; with them it is counted.
static bool give_levels(struct levels *levels, struct answer *answer, struct err *err)
{
	struct query_context *asked = &levels->asked;
	struct window_query query = query_of(levels);
	struct window_bucket *buckets = mem_alloc(levels->buckets, sizeof *buckets);
	struct heap_amount start = { 0 };
	bool good = query_context_level(asked, asked->from, &start, err);

	// With filters the allocations that they select are gone through.
	if (good && !query_context_selects_all(asked))
		good = window_series(asked->window, &query, 1, buckets, levels->buckets, err);
	else if (good)
		good = window_timeline(asked->window, &query, buckets, levels->buckets, err);
	levels->start_bytes = start.bytes;
	if (good)
		write_levels(levels, buckets, answer->sink);
	mem_free(buckets);
	return good;
}

// ---- cumulative ----

// Sums from the window's beginning, so the curve never falls.
static bool give_flow(struct levels *levels, struct answer *answer, struct err *err)
{
	struct window_query query = query_of(levels);
	struct window_flow *flows = mem_alloc(levels->buckets, sizeof *flows);
	struct heap_amount sum = { 0 };
	struct json json;
	bool good;

	good = window_flows(levels->asked.window, &query, 1, flows, levels->buckets, err);
	if (good) {
		begin(levels, &json, answer->sink);
		json_kv_array(&json, "peak_bytes");
		for (size_t i = 0; i < levels->buckets; i++)
			// One after the other: each bucket's sum has those before it in it.
			json_u64(&json, sum.bytes += flows[i].allocated.bytes);
		json_array_end(&json);
		json_kv_array(&json, "most_count");
		for (size_t i = 0; i < levels->buckets; i++)
			json_u64(&json, sum.count += flows[i].allocated.count);
		json_array_end(&json);
		json_kv_string(&json, "low_bytes", NULL);
		json_kv_string(&json, "end_bytes", NULL);
		json_kv_u64(&json, "start_bytes", 0);
		json_end(&json);
	}
	mem_free(flows);
	return good;
}

// ---- what pictures are drawn of: resident memory, the largest free block ----

// The bucket of a time; `count` behind the last.
static size_t bucket_of(const struct levels *levels, double time)
{
	double from = (double)levels->asked.from_ns, to = (double)levels->asked.to_ns;
	// For example 3 s of a window from 2 s to 10 s in 8 buckets: (3 - 2) / 8 * 8 = bucket 1.
	double at = (time - from) / (to - from) * (double)levels->buckets;

	ASSERT(levels->buckets > 0);
	if (at < 0)
		return 0;
	return at < (double)levels->buckets ? (size_t)at : levels->buckets;
}

// The curve holds each level until its next point; of a bucket with several the highest, or the
// lowest, is told.
static void fill(const struct levels *levels, const struct chart_curve *curve, bool lowest,
		 double *values)
{
	ASSERT(levels->buckets > 0);
	for (size_t i = 0; i < levels->buckets; i++)
		values[i] = -1;
	for (size_t p = 0; p < curve->count; p++) {
		double value = curve->points[p].y;
		size_t first = bucket_of(levels, curve->points[p].x);
		size_t last = p + 1 < curve->count ? bucket_of(levels, curve->points[p + 1].x)
						   : levels->buckets;

		// To the bucket of the next point, included: in that one the level still was this,
		// until the point.
		for (size_t i = first; i <= last && i < levels->buckets; i++)
			// Of resident memory the highest counts, of the largest free block the
			// lowest: what is near the limit.
			if (values[i] < 0 || (lowest ? value < values[i] : value > values[i]))
				values[i] = value;
	}
}

// What `tidemark plot` draws, as buckets: the first curve of its chart.
static bool give_picture(struct levels *levels, enum plot_kind kind, struct answer *answer,
			 struct err *err)
{
	const struct plot_options options = { .kind = kind, .buckets = levels->buckets };
	struct chart chart = { 0 };
	double *values = mem_alloc(levels->buckets, sizeof *values);
	bool good = plot_make(&chart, &levels->asked, &options, err);

	if (good) {
		ASSERT(chart.curves_count > 0);
		fill(levels, &chart.curves[0], kind == PLOT_LARGEST_FREE, values);
		write_known(levels, values, answer->sink);
	}
	chart_fini(&chart);
	mem_free(values);
	if (!good && err->kind == ERR_USAGE) // it has no samples, or nothing is mapped
		answer->reply->refusal = REFUSAL_NOT_RECORDED;
	return good;
}

// ---- questions ----

static bool take_buckets(struct levels *levels, struct answer *answer, struct err *err)
{
	uint64_t buckets = ANSWER_BUCKETS_DEFAULT;

	if (!params_take_number(&answer->params, "buckets", 1, ANSWER_BUCKETS_MAX, &buckets, err))
		return false;
	levels->buckets = buckets;
	return true;
}

static bool has_length(const struct levels *levels, struct err *err)
{
	return levels->asked.from_ns < levels->asked.to_ns ||
	       err_set(err, ERR_USAGE,
		       "the window has no length: there is no time to divide into buckets");
}

// What the trace has not recorded is refused as that, and the page shows no such layer.
static bool give(struct levels *levels, struct answer *answer, struct err *err)
{
	struct query_context *asked = &levels->asked;
	unsigned layers = window_facts(asked->window)->layers;

	if (!has_length(levels, err))
		return false;
	switch (levels->layer) {
	case LAYER_VM:
		if (!(layers & WINDOW_VM))
			return answer_refuse(answer, REFUSAL_NOT_RECORDED, err,
					     "the trace has no calls on virtual memory");
		return give_levels(levels, answer, err);
	case LAYER_HEAP:
		return give_levels(levels, answer, err);
	case LAYER_CUMULATIVE:
		return give_flow(levels, answer, err);
	case LAYER_RSS:
		return give_picture(levels, PLOT_RSS, answer, err);
	case LAYER_LARGEST_FREE:
		break;
	}
	if (!(layers & WINDOW_VM))
		return answer_refuse(answer, REFUSAL_NOT_RECORDED, err,
				     "the trace has no calls on virtual memory");
	return give_picture(levels, PLOT_LARGEST_FREE, answer, err);
}

// What is of whole processes refuses filters that select allocations, as the picture of it does.
static const struct query_context_rules *rules_of(enum layer layer)
{
	switch (layer) {
	case LAYER_RSS:
		return plot_rules(PLOT_RSS);
	case LAYER_LARGEST_FREE:
		return plot_rules(PLOT_LARGEST_FREE);
	default:
		return &query_context_findings_rules;
	}
}

bool answer_levels_timeline(struct answer *answer, struct err *err)
{
	struct levels levels = { .layer = LAYER_HEAP };
	int layer = LAYER_HEAP;
	bool good;

	if (!take_buckets(&levels, answer, err) ||
	    !params_take_word(&answer->params, "layer", layer_words, &layer, err))
		return false;
	levels.layer = (enum layer)layer;
	// `layer` is no filter here, since two of its words are no layers: so it is made one.
	if (layer == LAYER_VM)
		selection_words_add(&answer->words, SELECTION_LAYER, "vm");
	if (!answer_ask(answer, rules_of(levels.layer), &levels.asked, err))
		return false;
	good = give(&levels, answer, err);
	query_context_close(&levels.asked);
	return good;
}

bool answer_levels_curve(struct answer *answer, struct err *err)
{
	struct levels levels = { .layer = LAYER_LARGEST_FREE };
	bool good;

	if (!take_buckets(&levels, answer, err) ||
	    !answer_ask(answer, rules_of(levels.layer), &levels.asked, err))
		return false;
	good = give(&levels, answer, err);
	query_context_close(&levels.asked);
	return good;
}
