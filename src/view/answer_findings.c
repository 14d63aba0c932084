// What stands out: growth, transients, peaks, and the difference to another trace or window.
//
// Each answer is what the command of its name prints with --json, but peaks, which only the page
// needs: single tops of the level to be marked on its curve. For example the level goes 0, 10, 4,
// 9, 3 MB: the top of 9 rises by 5, over the higher of the valleys beside it, 4. Tops that rise
// less than a 200th of the highest are left out.
#include "view/answer.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/sort.h"
#include "engine/prominence.h"
#include "engine/window_series.h"
#include "report/find/diff.h"
#include "report/find/findings.h"
#include "report/find/growth.h"
#include "report/find/transients.h"

#include <stdlib.h>

enum {
	FINDINGS_ROWS = 5, // of each kind, as the command has it
	PEAKS_DEFAULT = 20,
	PEAKS_EXACT_STEPS = 4 << 20, // of longer windows the tops are looked for in buckets
	PEAKS_BUCKETS = 4096,
	PEAKS_PART = 200, // of the highest: what rises less is no peak to a person
};

// What is wrong or could be cheaper: the first page.
bool answer_findings_all(struct answer *answer, struct err *err)
{
	struct query_context asked;
	struct findings findings;
	struct findings_page page = { .findings = &findings };
	bool good;

	if (!answer_rows(answer, FINDINGS_ROWS, &page.rows_max, err) ||
	    !answer_ask(answer, &query_context_findings_rules, &asked, err))
		return false;
	good = findings_find(&findings, &asked, err);
	if (good) {
		good = findings_json(&page, answer->sink, err);
		findings_fini(&findings);
	}
	query_context_close(&asked);
	return good;
}

// `min-bytes` of 0, or none, is the least growth that the command tells. So with transients: there
// it is a part of the peak.
bool answer_findings_growth(struct answer *answer, struct err *err)
{
	struct growth_options options = { .keep = true };
	struct query_context asked;
	struct growth growth;
	bool good;

	if (!answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options.grown_min, err) ||
	    !answer_ask(answer, &query_context_findings_rules, &asked, err))
		return false;
	good = growth_find(&growth, &asked, &options, err);
	if (good) {
		const struct growth_page page = { .asked = &asked, .growth = &growth };

		growth_json(&page, answer->sink);
		growth_fini(&growth);
	}
	query_context_close(&asked);
	return good;
}

bool answer_findings_transients(struct answer *answer, struct err *err)
{
	struct spikes_options options = { 0 };
	struct query_context asked;
	struct spikes spikes;
	bool good;

	if (!answer_rows(answer, ANSWER_ROWS_DEFAULT, &options.rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &options.rise_min, err) ||
	    !answer_ask(answer, &query_context_findings_rules, &asked, err))
		return false;
	good = spikes_find(&spikes, &asked, &options, err);
	if (good) {
		const struct transients transients = { .asked = &asked, .spikes = &spikes };

		transients_json(&transients, answer->sink);
		spikes_fini(&spikes);
	}
	query_context_close(&asked);
	return good;
}

// ---- peaks ----

// A top of the level, and what tells it from others.
struct peak {
	uint64_t edge, time_ns;
	uint64_t bytes, count;
	uint64_t rise, fall;
};

// `list` grows to all peaks of the window, and is cut to the `n` that stand out.
struct peaks {
	struct query_context *asked;
	struct prominence crest;
	struct heap_amount level;
	uint64_t fallen_edge; // of a fall whose event may have another step; 0: of none
	bool in_buckets;
	struct peak *list;
	size_t list_count, capacity;
};

// A group of spikes is none: the page marks single tops.
static void keep_spike(void *context, const struct prominence_hill *hill)
{
	struct peaks *peaks = context;

	if (hill->spikes != 1)
		return;
	*MEM_ADD(peaks->list, peaks->list_count, peaks->capacity) = (struct peak){
		.edge = hill->top_edge,
		.bytes = hill->top,
		.rise = hill->top - hill->base,
	};
}

// A fall was all of its event that is seen.
static void settle_fall(struct peaks *peaks)
{
	if (peaks->fallen_edge)
		prominence_add(&peaks->crest, peaks->fallen_edge, peaks->level.bytes);
	peaks->fallen_edge = 0;
}

// Between the two steps of a realloc the level is lower by all of the old block, and never was.
static bool take_change(void *context, const struct window_change *change)
{
	struct peaks *peaks = context;

	if (peaks->fallen_edge && (!change->up || change->edge != peaks->fallen_edge + 1 ||
				   !window_edge_splits(peaks->asked->window, peaks->fallen_edge)))
		settle_fall(peaks);
	peaks->fallen_edge = 0;
	if (change->up)
		peaks->level.bytes += change->bytes;
	else
		peaks->level.bytes -= change->bytes;
	// Several changes may be at one edge: only the level after the last of them was ever there
	// to be seen.
	if (!change->last)
		return true;
	if (change->up)
		prominence_add(&peaks->crest, change->edge, peaks->level.bytes);
	else
		peaks->fallen_edge = change->edge;
	return true;
}

SORT_ORDER(highest_first, struct peak, SORT_FALLS(rise), SORT_RISES(edge))

SORT_ORDER(earliest_first, struct peak, SORT_RISES(edge))

// Step by step, for windows that are short enough for that.
static bool find_peaks(struct peaks *peaks, uint64_t rise_min, struct err *err)
{
	struct query_context *asked = peaks->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	bool good;

	if (!query_context_level(asked, asked->from, &peaks->level, err))
		return false;
	prominence_init(&peaks->crest, rise_min, asked->from, peaks->level.bytes, keep_spike,
			peaks);
	good = window_changes(asked->window, &query, take_change, peaks, err);
	settle_fall(peaks);
	prominence_finish(&peaks->crest);
	prominence_fini(&peaks->crest);
	return good;
}

// The same of a long window of all there is, in buckets: first its low, then its peak, then where
// it ends. `edge` of what is found is three times the bucket, and one to three more.
static bool find_in_buckets(struct peaks *peaks, struct err *err)
{
	struct query_context *asked = peaks->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct window_bucket *buckets = mem_alloc(PEAKS_BUCKETS, sizeof *buckets);
	uint64_t highest = 0;
	bool good;

	// A window of 100 million steps has 4,096 buckets of time: three points of each are looked
	// at, and not all its steps.
	query.from_ns = asked->from_ns;
	query.to_ns = asked->to_ns;
	good = query_context_level(asked, asked->from, &peaks->level, err) &&
	       window_timeline(asked->window, &query, buckets, PEAKS_BUCKETS, err);
	for (size_t i = 0; good && i < PEAKS_BUCKETS; i++)
		if (buckets[i].bytes_peak > highest)
			highest = buckets[i].bytes_peak;
	if (good) {
		prominence_init(&peaks->crest, highest / PEAKS_PART + 1, 0, peaks->level.bytes,
				keep_spike, peaks);
		// In this order a spike within one bucket is a valley, a top and a valley: it is
		// found as one.
		for (uint64_t i = 0; i < PEAKS_BUCKETS; i++) {
			prominence_add(&peaks->crest, 3 * i + 1, buckets[i].bytes_low);
			prominence_add(&peaks->crest, 3 * i + 2, buckets[i].bytes_peak);
			prominence_add(&peaks->crest, 3 * i + 3, buckets[i].bytes_end);
		}
		prominence_finish(&peaks->crest);
		prominence_fini(&peaks->crest);
	}
	mem_free(buckets);
	return good;
}

// Where a peak is. The borders of buckets may have been moved a little (window_series.h), so it is
// looked for beside its bucket too; if it is nowhere, the bucket's end stands for it.
static bool find_edge(const struct peaks *peaks, struct peak *peak, struct err *err)
{
	struct query_context *asked = peaks->asked;
	// For example edge 3 * 17 + 2: the peak of bucket 17. In double: a window may be years of
	// ns times 4,096.
	double width = (double)(asked->to_ns - asked->from_ns) / PEAKS_BUCKETS;
	double begin = (double)asked->from_ns + width * (double)((peak->edge - 1) / 3);
	struct query_context_peak found;

	peak->edge = window_edge_at(asked->window, (uint64_t)(begin + width));
	// First the bucket itself, then an eighth, a quarter, a half and a whole of its width to
	// both sides.
	for (double more = 0; more <= 1; more = more > 0 ? more * 2 : 0.125) {
		double from = begin - more * width, to = begin + (1 + more) * width;
		uint64_t first = from <= (double)asked->from_ns
					 ? asked->from
					 : window_edge_at(asked->window, (uint64_t)from);
		uint64_t last = window_edge_at(asked->window, (uint64_t)to);

		if (!query_context_peak(asked, first, last, &found, err))
			return false;
		if (found.bytes < peak->bytes)
			continue;
		peak->bytes = found.bytes;
		peak->edge = found.edge;
		break;
	}
	return true;
}

// The highest of all belongs to them, though others may rise more above what is beside them.
static void keep_highest(struct peaks *peaks, uint64_t n)
{
	size_t highest = 0;

	ASSERT(n > 0); // answer_rows gives no 0
	for (size_t i = 1; i < peaks->list_count; i++)
		if (peaks->list[i].bytes > peaks->list[highest].bytes)
			highest = i;
	// It takes the place of the last of the n.
	if (highest >= n)
		peaks->list[n - 1] = peaks->list[highest];
}

// Leave the `n` that stand out most, in their order, and look up what the curve does not say: when
// each was, of how many blocks, and of a bucket's peak at which edge. That is asked of few, as it
// costs more than the curve does.
static bool settle(struct peaks *peaks, uint64_t n, struct err *err)
{
	struct heap_amount level;

	if (peaks->list_count > 1)
		qsort(peaks->list, peaks->list_count, sizeof *peaks->list, highest_first);
	keep_highest(peaks, n);
	if (peaks->list_count > n)
		peaks->list_count = n;
	if (peaks->list_count > 1)
		qsort(peaks->list, peaks->list_count, sizeof *peaks->list, earliest_first);
	for (size_t i = 0; i < peaks->list_count; i++) {
		struct peak *peak = &peaks->list[i];

		if (peaks->in_buckets && peak->edge > 0 && !find_edge(peaks, peak, err))
			return false;
		peak->time_ns = window_edge_time(peaks->asked->window, peak->edge);
		if (!query_context_level(peaks->asked, peak->edge, &level, err))
			return false;
		peak->count = level.count;
	}
	return true;
}

static void write_peaks(const struct peaks *peaks, struct sink *sink)
{
	const struct query_context *asked = peaks->asked;
	struct json json;

	json_begin(&json, sink, false, "tidemark-view-peaks-1");
	json_kv_u64(&json, "from_ns", asked->from_ns);
	json_kv_u64(&json, "to_ns", asked->to_ns);
	json_kv_string(&json, "layer", asked->layers == WINDOW_VM ? "vm" : "heap");
	json_kv_array(&json, "peaks");
	for (size_t i = 0; i < peaks->list_count; i++) {
		const struct peak *peak = &peaks->list[i];

		json_object_begin(&json);
		json_kv_u64(&json, "time_ns", peak->time_ns);
		json_kv_u64(&json, "bytes", peak->bytes);
		json_kv_u64(&json, "count", peak->count);
		json_kv_u64(&json, "rise_bytes", peak->rise);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_end(&json);
}

// Buckets only for all there is: with filters the steps have to be gone through in any case.
bool answer_findings_peaks(struct answer *answer, struct err *err)
{
	struct query_context asked;
	struct peaks peaks = { .asked = &asked };
	struct query_context_peak highest;
	uint64_t n;
	bool good;

	if (!answer_rows(answer, PEAKS_DEFAULT, &n, err) ||
	    !answer_ask(answer, &query_context_findings_rules, &asked, err))
		return false;
	peaks.in_buckets = asked.to - asked.from > PEAKS_EXACT_STEPS &&
			   asked.from_ns < asked.to_ns && query_context_selects_all(&asked);
	if (peaks.in_buckets)
		good = find_in_buckets(&peaks, err);
	else
		good = query_context_peak(&asked, asked.from, asked.to, &highest, err) &&
		       find_peaks(&peaks, highest.bytes / PEAKS_PART + 1, err);
	good = good && settle(&peaks, n, err);
	if (good)
		write_peaks(&peaks, answer->sink);
	mem_free(peaks.list);
	query_context_close(&asked);
	return good;
}

// ---- difference ----

struct sides {
	struct query_context before, after;
	struct selection_words words; // of B
	const char *with_from, *with_to;
	bool self; // B is another window of the same trace
	int order;
	struct diff_options options;
};

// Without a second trace the comparison is with another window, and needs one. B is asked with the
// filters of A; only its window may be another.
static bool take_sides(struct sides *sides, struct answer *answer, struct err *err)
{
	static const char *const withs[] = { "other", "self", NULL };
	// With a second trace the page compares with it unless it says "self".
	int with = answer->viewer->options.other ? 0 : 1;

	if (!params_take_word(&answer->params, "with", withs, &with, err) ||
	    !params_take(&answer->params, "with-from", &sides->with_from, err) ||
	    !params_take(&answer->params, "with-to", &sides->with_to, err) ||
	    !params_take_word(&answer->params, "sort", diff_order_words, &sides->order, err) ||
	    !answer_rows(answer, ANSWER_ROWS_DEFAULT, &sides->options.rows_max, err) ||
	    !params_take_bytes(&answer->params, "min-bytes", &sides->options.bytes_min, err) ||
	    !params_take_filters(&answer->params, 0, &answer->words, err) ||
	    !params_check_taken(&answer->params, err))
		return false;
	sides->self = with == 1;
	sides->options.order = (enum diff_order)sides->order;
	selection_words_with_window(&sides->words, &answer->words, sides->with_from,
				    sides->with_to);
	if (sides->self && !sides->with_from && !sides->with_to)
		return answer_refuse(answer, REFUSAL_USAGE, err,
				     "there is no second trace and no second window ('with-from', "
				     "'with-to')");
	if (!sides->self && !answer->viewer->options.other)
		return answer_refuse(answer, REFUSAL_NOT_RECORDED, err,
				     "there is no second trace (try: tidemark view A --diff B)");
	return selection_words_check(&sides->words, err);
}

// What opens a side: the queue that has its trace open.
struct sides_open {
	const struct sides *sides;
	struct answer *answer;
	struct query_queue *with; // of B
};

// Side 0 is at the queue whose turn it is, side 1 at the other trace's, or at the same.
static bool open_side(void *context, int side, uint32_t, struct query_context *asked,
		      struct err *err)
{
	const struct sides_open *open = context;
	struct query_queue *query_queue = side == 0 ? open->answer->query_queue : open->with;
	const struct query_context_options options = {
		.rules = &query_context_findings_rules,
		.path = query_queue->opened.path,
		.words = side == 0 ? &open->answer->words : &open->sides->words,
		.opened = &query_queue->opened,
		.window = query_queue->window_options,
	};

	return query_context_open(asked, &options, err);
}

// The contexts are opened by diff_find, by open_side. They are closed here whether it came to that
// or not: one that was never opened is { 0 }.
static bool open_and_compare(struct sides *sides, struct query_queue *with, struct answer *answer,
			     struct err *err)
{
	const struct viewer_options *options = &answer->viewer->options;
	struct sides_open open = { sides, answer, with };
	const char *const names[] = { options->path, sides->self ? options->path : options->other };
	struct diff diff;
	struct diff_page page = {
		.sides = { { &sides->before, &names[0], 1 }, { &sides->after, &names[1], 1 } },
		.diff = &diff,
	};
	bool good;

	sides->options.memory_bytes = answer->query_queue->window_options.memory_bytes;
	sides->options.open = open_side;
	sides->options.context = &open;
	good = diff_find(&diff, page.sides, &sides->options, err);
	if (good) {
		diff_json(&page, answer->sink);
		diff_fini(&diff);
	}
	query_context_close(&sides->before);
	query_context_close(&sides->after);
	return good;
}

// Enters the second queue while it is at the first: always in this order, so that two such
// questions cannot wait for each other.
bool answer_findings_diff(struct answer *answer, struct err *err)
{
	struct sides sides = { 0 };
	struct query_queue *other = &answer->viewer->other;
	const struct query_queue_asker asker = { .gone = query_queue_stops,
						 .context = answer->query_queue };
	bool good = take_sides(&sides, answer, err);

	if (good && sides.self) {
		good = open_and_compare(&sides, answer->query_queue, answer, err);
	} else if (good && query_queue_enter(other, &asker) == QUERY_QUEUE_MINE) {
		good = open_and_compare(&sides, other, answer, err);
		query_queue_leave(other);
	} else if (good) {
		good = answer_refuse(answer, REFUSAL_BUSY, err, "the server is being stopped");
	}
	selection_words_fini(&sides.words);
	return good;
}
