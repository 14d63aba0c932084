// What grows in all of a trace, kept beside its index: the question is mostly asked as it is, and
// its answer is as large as the sites that grow, where finding it goes through what 4,096 of them
// did.
//
// For example 700,000 stacks, 100 million events: postings of 4,096 sites are in nearly all pages
// of 350 MB, and 60 levels for each of those that grow are 2 MB.
#include "report/find/growth.h"

#include "base/mem.h"
#include "engine/shelf.h"

#include <math.h>
#include <string.h>

enum {
	VERSION = 1, // raise it when a figure changes its meaning, or is found in another way
	RATE_MAX = 1 << 30,
};

static const char name[] = "growth";

// A row as it is in the file. It has a site in place of a place's number, which is another when it
// is read; the verdict is that of its list.
struct kept_row {
	struct query_context_place site;
	uint64_t grown;
	double slope, fit, slope_per_s;
	uint64_t from_ns, to_ns, since_ns;
	int64_t grown_count;
	struct heap_amount live;
	uint64_t lows[GROWTH_BUCKETS];
};
_Static_assert(sizeof(struct kept_row) == (11 + GROWTH_BUCKETS) * 8, "nothing is between them");

// What the file must begin with. Blocks of pools count where rows tell heaps apart.
static struct shelf_stamp stamp_of(const struct query_context *asked)
{
	struct shelf_stamp stamp = {
		.magic = "TIDEGRO",
		.version = VERSION,
		.sizes = { sizeof(struct kept_row), GROWTH_BUCKETS, GROWTH_BYTES_MIN,
			   asked->pools_out },
	};

	return stamp;
}

bool growth_kept_find(struct shelf *shelf, const struct growth *growth,
		      const struct query_context *asked)
{
	const struct query_context_options *options = &asked->options;

	*shelf = (struct shelf){ 0 };
	if (growth->grown_min != GROWTH_BYTES_MIN || asked->from_given || asked->to_given ||
	    asked->layers != WINDOW_HEAP || !options->rules->exit_frees)
		return false;
	shelf_find(shelf, asked->reader, asked->opened->path, &asked->selection.query,
		   &options->window);
	return shelf->path != NULL;
}

// ---- writing ----

static void put_list(struct index_out *out, const struct growth_list *list,
		     const struct query_context *asked)
{
	index_out_put(out, &list->slope_per_s, sizeof list->slope_per_s);
	index_out_put_u64(out, list->grown);
	index_out_put_u64(out, list->total);
	for (size_t i = 0; i < list->total; i++) {
		const struct growth_row *row = &list->rows[i];
		struct kept_row kept = {
			.site = asked->places[row->place],
			.grown = row->trend.grown,
			.slope = row->trend.slope,
			.fit = row->trend.fit,
			.slope_per_s = row->slope_per_s,
			.from_ns = row->from_ns,
			.to_ns = row->to_ns,
			.since_ns = row->since_ns,
			.grown_count = row->grown_count,
			.live = row->live,
		};

		ASSERT(row->place < asked->places_count);
		memcpy(kept.lows, row->lows, sizeof kept.lows);
		index_out_put(out, &kept, sizeof kept);
	}
}

void growth_keep(struct shelf *shelf, const struct growth *growth,
		 const struct query_context *asked)
{
	struct shelf_stamp stamp = stamp_of(asked);
	struct index_out *out = shelf_new(shelf, name, &stamp);

	ASSERT(growth->grown_min == GROWTH_BYTES_MIN);
	if (!out)
		return;
	index_out_put(out, &growth->live, sizeof growth->live);
	index_out_put_u64(out, growth->processes);
	index_out_put_u64(out, growth->skipped);
	index_out_put_u64(out, growth->brief);
	index_out_put_u64(out, growth->places_skipped);
	index_out_put_u64(out, growth->from_ns);
	index_out_put_u64(out, growth->to_ns);
	for (int v = 0; v < TREND_VERDICTS; v++)
		put_list(out, &growth->lists[v], asked);
	shelf_end(shelf, out);
}

// ---- reading ----

// Bytes a second that can be: what is written turns them into a number of bytes a day.
static bool is_rate(double rate)
{
	return isfinite(rate) && rate >= 0 && rate <= (double)RATE_MAX * RATE_MAX / 86400;
}

// All that is looked at without another look, or turned into whole numbers.
static bool is_good(const struct kept_row *kept, const struct reader *reader)
{
	return kept->site.process < reader_processes_count(reader) &&
	       kept->site.stack < reader_stacks_count(reader) && is_rate(kept->slope_per_s) &&
	       isfinite(kept->slope) && isfinite(kept->fit);
}

static void take_list(struct index_in *in, struct growth_list *list, enum trend_verdict verdict,
		      struct query_context *asked)
{
	size_t count;

	index_in_take(in, &list->slope_per_s, sizeof list->slope_per_s);
	list->grown = index_in_take_u64(in);
	count = index_in_take_count(in, sizeof(struct kept_row));
	in->bad |= !is_rate(list->slope_per_s) || (verdict == TREND_STEADY && count);
	for (size_t i = 0; i < count && !in->bad; i++) {
		struct kept_row kept;
		struct growth_row row;

		index_in_take(in, &kept, sizeof kept);
		in->bad |= !is_good(&kept, asked->reader);
		if (in->bad)
			return;
		row = (struct growth_row){
			.place = query_context_place(asked, kept.site.process, kept.site.stack),
			.trend = { verdict, kept.grown, kept.slope, kept.fit },
			.slope_per_s = kept.slope_per_s,
			.from_ns = kept.from_ns,
			.to_ns = kept.to_ns,
			.since_ns = kept.since_ns,
			.grown_count = kept.grown_count,
			.live = kept.live,
		};
		memcpy(row.lows, kept.lows, sizeof row.lows);
		*MEM_ADD(list->rows, list->total, list->capacity) = row;
	}
}

bool growth_take_kept(const struct shelf *shelf, struct growth *growth, struct query_context *asked)
{
	const struct growth before = *growth;
	struct shelf_stamp stamp = stamp_of(asked);
	struct index_in in;
	bool good;

	ASSERT(!growth->live.count);
	if (!shelf_open(shelf, name, &stamp, &in))
		return false;
	index_in_take(&in, &growth->live, sizeof growth->live);
	growth->processes = (size_t)index_in_take_u64(&in);
	growth->skipped = (size_t)index_in_take_u64(&in);
	growth->brief = (size_t)index_in_take_u64(&in);
	growth->places_skipped = (size_t)index_in_take_u64(&in);
	growth->from_ns = index_in_take_u64(&in);
	growth->to_ns = index_in_take_u64(&in);
	for (int v = 0; v < TREND_VERDICTS; v++)
		take_list(&in, &growth->lists[v], (enum trend_verdict)v, asked);
	good = !in.bad && in.at == in.end;
	index_in_close(&in);
	if (good)
		return true;
	growth_fini(growth);
	*growth = before;
	return false;
}
