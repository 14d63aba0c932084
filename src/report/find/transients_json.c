// Spikes for programs: docs/schema/transients.json describes the JSON.
#include "base/mem.h"
#include "report/find/transients.h"
#include "report/table/query_write.h"

// The height is the body less the base; `top` is the highest level in the spike. In a group
// (`hill.spikes` above 1) the top is above the body, since single spikes rise out of it. All makers
// have more than 0 bytes: sites that gave back are in none of the sums, so makers and other_bytes
// can add up to more than risen_bytes.
static void write_spike(struct json *json, const struct transients *t, const struct spikes_row *row)
{
	json_object_begin(json);
	json_kv_u64(json, "height_bytes", row->hill.body - row->hill.base);
	json_kv_u64(json, "top_bytes", row->hill.top);
	json_kv_u64(json, "body_bytes", row->hill.body);
	json_kv_u64(json, "base_bytes", row->hill.base);
	json_kv_u64(json, "begin_ns", row->begin_ns);
	json_kv_u64(json, "top_ns", row->top_ns);
	json_kv_u64(json, "end_ns", row->end_ns);
	json_kv_u64(json, "half_begin_ns", row->half_begin_ns);
	json_kv_u64(json, "half_end_ns", row->half_end_ns);
	json_kv_bool(json, "ended", !row->cut);
	json_kv_bool(json, "hill", row->whole);
	json_kv_u64(json, "spikes", row->hill.spikes);
	json_kv_u64(json, "risen_bytes", row->risen);
	json_kv_array(json, "makers");
	for (size_t i = 0; i < row->spike_sites_count; i++) {
		const struct query_context_place *place =
			&t->asked->places[row->spike_sites[i].place];

		json_object_begin(json);
		json_kv_u64(json, "bytes", (uint64_t)row->spike_sites[i].bytes);
		json_kv_i64(json, "count", row->spike_sites[i].count);
		query_write_place(t->asked, json, place->process, place->stack);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "other_makers", row->spike_sites_rest);
	json_kv_u64(json, "other_bytes", (uint64_t)row->rest_bytes);
	json_object_end(json);
}

// A period is from one buffer's beginning to the next one's, so n buffers have n - 1 of them: 5
// that began between 1.0 s and 3.0 s have one of 0.5 s. Lifetimes are of those that ended.
static void write_series(struct json *json, const struct transients *t,
			 const struct spikes_series *series)
{
	const struct query_context_place *place = &t->asked->places[series->place];

	ASSERT(series->count >= 2);
	json_object_begin(json);
	json_kv_u64(json, "count", series->count);
	json_kv_u64(json, "size", series->size);
	json_kv_u64(json, "first_ns", series->first_ns);
	json_kv_u64(json, "last_ns", series->last_ns);
	json_kv_u64(json, "period_ns", (series->last_ns - series->first_ns) / (series->count - 1));
	json_kv_u64(json, "period_min_ns", series->period_least_ns);
	json_kv_u64(json, "period_max_ns", series->period_most_ns);
	json_kv_u64(json, "ended", series->ended);
	json_kv_u64_if(json, "lifetime_ns", series->ended,
		       series->ended ? series->lived_ns / series->ended : 0);
	json_kv_u64_if(json, "lifetime_min_ns", series->ended, series->lived_least_ns);
	json_kv_u64_if(json, "lifetime_max_ns", series->ended, series->lived_most_ns);
	query_write_place(t->asked, json, place->process, place->stack);
	json_object_end(json);
}

// The two lists are cut by themselves, so each has a total and what is left out of it. Where
// series_all_followed is false, there were too many sizes and a series may be missing.
void transients_json(const struct transients *t, struct sink *sink)
{
	const struct spikes *spikes = t->spikes;
	struct json json;

	json_begin(&json, sink, true, "tidemark-transients-1");
	query_write_trace(t->asked, &json);
	json_kv_u64(&json, "min_bytes", spikes->rise_min);
	json_kv_u64(&json, "level_from_bytes", spikes->level_from);
	json_kv_u64(&json, "level_to_bytes", spikes->level_to);
	json_kv_u64(&json, "peak_bytes", spikes->peak);
	json_kv_u64_if(&json, "peak_ns", spikes->peak > 0, spikes->peak_ns);
	json_kv_u64(&json, "spikes_total", spikes->rows_total);
	json_kv_array(&json, "spikes");
	for (size_t i = 0; i < spikes->rows_count; i++)
		write_spike(&json, t, &spikes->rows[i]);
	json_array_end(&json);
	json_kv_u64(&json, "spikes_left_out", spikes->rows_total - spikes->rows_count);
	json_kv_u64(&json, "series_total", spikes->series_total);
	json_kv_bool(&json, "series_all_followed", !spikes->sizes_dropped);
	json_kv_array(&json, "series");
	for (size_t i = 0; i < spikes->series_count; i++)
		write_series(&json, t, &spikes->series[i]);
	json_array_end(&json);
	json_kv_u64(&json, "series_left_out", spikes->series_total - spikes->series_count);
	query_write_end(t->asked, &json);
}

// ---- one table: a line for each maker of each spike, then one for each series ----

// A row as CSV has it: of a maker of a spike, or of a series. `height` is in bytes.
struct line {
	const char *section;
	uint64_t rank, begin_ns, end_ns, height;
	int64_t bytes, count;
	uint32_t place;
};

#define FIELD(member) SHEET_FIELD(struct line, member)
static const struct sheet_column columns[] = {
	{ "section", SHEET_TEXT, SHEET_HEADS, FIELD(section), .meaning = "spike, hill or series" },
	{ "rank", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(rank), .meaning = "which of them, from 1" },
	{ "begin_ns", SHEET_TIME, 0, FIELD(begin_ns), .meaning = "when it begins" },
	{ "end_ns", SHEET_TIME, 0, FIELD(end_ns),
	  .meaning = "when it is over; of a series, when its last buffer begins" },
	{ "height", SHEET_BYTES, 0, FIELD(height),
	  .meaning = "of the spike; of one buffer of a series" },
	{ "bytes", SHEET_BYTES, SHEET_SIGNED, FIELD(bytes), .meaning = "what the site has of it" },
	{ "count", SHEET_COUNT, SHEET_SIGNED, FIELD(count), .meaning = "the same in blocks" },
	{ .kind = SHEET_SITE },
};
#undef FIELD

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct transients *t = sheet->context;
	const struct line *line = of;
	const struct query_context_place *place = &t->asked->places[line->place];

	return (struct sheet_site){ t->asked, place->process, place->stack };
}

// A spike has as many lines as it has listed makers; what its other makers have is in JSON alone.
// `rank` counts spikes and hills together, and series from 1 again. `left_out` is of spikes and
// series, not of lines. The bytes of a series are all that it allocated: 50 buffers of 1 MiB are 50
// MiB, of which never more than 1 MiB lived. Its end_ns is when the last of them began.
void transients_rows(const struct transients *t, struct sheet *sheet)
{
	const struct spikes *spikes = t->spikes;

	ASSERT(spikes->rows_count <= spikes->rows_total &&
	       spikes->series_count <= spikes->series_total);
	sheet->context = t;
	sheet->site_of = site_of;
	sheet->left_out = spikes->rows_total - spikes->rows_count + spikes->series_total -
			  spikes->series_count;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < spikes->rows_count; i++) {
		const struct spikes_row *row = &spikes->rows[i];

		for (size_t m = 0; m < row->spike_sites_count; m++) {
			const struct spikes_maker *maker = &row->spike_sites[m];

			sheet_row(sheet,
				  &(struct line){ row->whole ? "hill" : "spike", i + 1,
						  row->begin_ns, row->end_ns,
						  row->hill.body - row->hill.base, maker->bytes,
						  maker->count, maker->place });
		}
	}
	for (size_t i = 0; i < spikes->series_count; i++) {
		const struct spikes_series *series = &spikes->series[i];

		sheet_row(sheet,
			  &(struct line){ "series", i + 1, series->first_ns, series->last_ns,
					  series->size, (int64_t)(series->size * series->count),
					  (int64_t)series->count, series->place });
	}
	sheet_end(sheet);
}
