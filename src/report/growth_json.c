// Growth for programs: docs/schema/growth.json describes the JSON.
#include "report/growth.h"
#include "report/lines.h"
#include "report/query_write.h"

#include <inttypes.h>

static const enum trend_verdict order[] = { TREND_GROWS, TREND_RECENT, TREND_LEVELS_OFF,
					    TREND_STEPS };
enum { ORDER_COUNT = sizeof order / sizeof *order };

static void write_row(const struct growth_page *page, struct json *json,
		      const struct growth_row *row)
{
	const struct query_context_place *place = &page->asked->places[row->place];

	json_object_begin(json);
	json_kv_string(json, "verdict", growth_key(row->trend.verdict));
	json_key(json, "slope_bytes_per_s");
	json_double(json, row->slope_per_s);
	json_key(json, "fit");
	json_double(json, row->trend.fit);
	json_kv_u64(json, "grown_bytes", row->trend.grown);
	json_key(json, "grown_count");
	json_i64(json, row->grown_count);
	json_kv_u64(json, "live_bytes", row->live.bytes);
	json_kv_u64(json, "live_count", row->live.count);
	json_kv_u64(json, "from_ns", row->from_ns);
	json_kv_u64(json, "to_ns", row->to_ns);
	json_kv_u64_if(json, "since_ns", row->trend.verdict != TREND_GROWS, row->since_ns);
	json_key(json, "lows");
	json_array_begin(json);
	json->pretty = false;
	for (size_t i = 0; i < GROWTH_BUCKETS; i++)
		json_u64(json, row->lows[i]);
	json_array_end(json);
	json->pretty = true;
	query_write_place(page->asked, json, place->process, place->stack);
	json_object_end(json);
}

void growth_json(const struct growth_page *page, struct sink *sink)
{
	const struct growth *growth = page->growth;
	uint64_t left_out = 0;
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-growth-1");
	query_write_trace(page->asked, &json);
	json_kv_u64(&json, "min_bytes", growth->grown_min);
	json_kv_u64(&json, "live_bytes", growth->live.bytes);
	json_kv_u64(&json, "live_count", growth->live.count);
	json_kv_u64(&json, "processes_judged", growth->processes);
	json_kv_u64(&json, "processes_not_judged", growth->skipped);
	json_kv_u64(&json, "processes_too_brief", growth->brief);
	json_kv_u64(&json, "sites_not_judged", growth->places_skipped);
	json_key(&json, "totals");
	json_object_begin(&json);
	for (size_t v = 0; v < ORDER_COUNT; v++) {
		const struct growth_list *list = &growth->lists[order[v]];

		json_key(&json, growth_key(order[v]));
		json_object_begin(&json);
		left_out += list->total - list->count;
		json_kv_u64(&json, "sites", list->total);
		json_kv_u64(&json, "grown_bytes", list->grown);
		json_key(&json, "slope_bytes_per_s");
		json_double(&json, list->slope_per_s);
		json_object_end(&json);
	}
	json_object_end(&json);
	json_key(&json, "rows");
	json_array_begin(&json);
	for (size_t v = 0; v < ORDER_COUNT; v++)
		for (size_t i = 0; i < growth->lists[order[v]].count; i++)
			write_row(page, &json, &growth->lists[order[v]].rows[i]);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", left_out);
	json_object_end(&json);
	sink_text(sink, "\n");
}

void growth_csv(const struct growth_page *page, struct sink *sink)
{
	sink_text(sink, "verdict,slope_bytes_per_s,fit,grown_bytes,grown_count,live_bytes,"
			"live_count,since_ns," LINES_CSV_PLACE "\r\n");
	for (size_t v = 0; v < ORDER_COUNT; v++) {
		const struct growth_list *list = &page->growth->lists[order[v]];

		page->asked->rows_left_out += list->total - list->count;
		for (size_t i = 0; i < list->count; i++) {
			const struct growth_row *row = &list->rows[i];
			const struct query_context_place *place = &page->asked->places[row->place];

			sink_format(sink,
				    "%s,%.3f,%.4f,%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 ",",
				    growth_key(order[v]), row->slope_per_s, row->trend.fit,
				    row->trend.grown, row->grown_count, row->live.bytes,
				    row->live.count);
			if (order[v] != TREND_GROWS)
				sink_format(sink, "%" PRIu64, row->since_ns);
			sink_text(sink, ",");
			lines_csv_place(sink, page->asked->reader, page->asked->names,
					place->process, place->stack);
			sink_text(sink, "\r\n");
		}
	}
}
