// Growth for programs: docs/schema/growth.json describes the JSON.
#include "report/find/growth.h"
#include "report/table/query_write.h"

static struct sheet_cell get_verdict(const struct sheet_at *at)
{
	const struct growth_row *row = at->row;

	return sheet_text(growth_key(row->trend.verdict));
}

// What grows all along has no moment at which it began. Its since_ns is where judging began, which
// would read as if something had happened then: so it is unknown.
static struct sheet_cell get_since(const struct sheet_at *at)
{
	const struct growth_row *row = at->row;

	return sheet_u64(row->trend.verdict != TREND_GROWS, row->since_ns);
}

// Sixty numbers on one line. They are what the verdict was made of, one for each equal part of
// from_ns to to_ns, so a reader can draw them.
static void write_lows(const struct sheet_at *at)
{
	const struct growth_row *row = at->row;
	struct json *json = at->sheet->json;

	json_kv_array(json, at->column->name);
	json_line_begin(json);
	for (size_t i = 0; i < GROWTH_BUCKETS; i++)
		json_u64(json, row->lows[i]);
	json_array_end(json);
	json_line_end(json);
}

// grown_count has a sign: a site that holds a few large blocks in place of many small ones grows in
// bytes and has fewer blocks.
#define FIELD(member) SHEET_FIELD(struct growth_row, member)
static const struct sheet_column columns[] = {
	{ "verdict", SHEET_TEXT, 0, get_verdict, 0,
	  .meaning = "grows, recent, levels_off or steps" },
	{ "slope_bytes_per_s", SHEET_RATE, 0, FIELD(slope_per_s), .meaning = "how fast it grows" },
	{ "fit", SHEET_REAL, 0, FIELD(trend.fit), .meaning = "how steadily: R² of the slope" },
	{ "grown_bytes", SHEET_BYTES, SHEET_CHANGE, FIELD(trend.grown),
	  .meaning = "what it grew by", .look = { 1, 12, PAPER_BOLD, { "grown" } } },
	{ "grown_count", SHEET_COUNT, SHEET_CHANGE, FIELD(grown_count),
	  .meaning = "the same in blocks" },
	{ "live_bytes", SHEET_BYTES, 0, FIELD(live.bytes), .meaning = "live at the end",
	  .look = { 2, 11, PAPER_PLAIN, { "live" } } },
	{ "live_count", SHEET_COUNT, 0, FIELD(live.count), .meaning = "the same in blocks",
	  .look = { 3, 10, PAPER_PLAIN, { "blocks" } } },
	{ "from_ns", SHEET_TIME, SHEET_JSON_ONLY, FIELD(from_ns),
	  .meaning = "where judging began" },
	{ "to_ns", SHEET_TIME, SHEET_JSON_ONLY, FIELD(to_ns), .meaning = "where it ended" },
	{ "since_ns", SHEET_TIME, 0, get_since, 0,
	  .meaning = "when it began, levelled off or took a step" },
	{ "lows", SHEET_OBJECT, SHEET_JSON_ONLY, .json = write_lows,
	  .meaning = "the lowest level in each sixtieth of that time" },
	{ .kind = SHEET_SITE },
};
#undef FIELD

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct growth_page *page = sheet->context;
	const struct growth_row *row = of;
	const struct query_context_place *place = &page->asked->places[row->place];

	return (struct sheet_site){ page->asked, place->process, place->stack };
}

// The four lists are one table, in which each row says its verdict. The limit of rows is of each
// list, so what is left out is the sum over the lists.
void growth_rows(const struct growth_page *page, enum trend_verdict from, enum trend_verdict to,
		 struct sheet *sheet)
{
	ASSERT(from >= TREND_GROWS && to <= TREND_VERDICTS);
	sheet->context = page;
	sheet->site_of = site_of;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (enum trend_verdict v = from; v < to; v++) {
		const struct growth_list *list = &page->growth->lists[v];

		ASSERT(list->count <= list->total);
		sheet->left_out += list->total - list->count;
		for (size_t i = 0; i < list->count; i++)
			sheet_row(sheet, &list->rows[i]);
	}
	sheet_end(sheet);
}

// live_bytes is what all sites of the judged processes hold at the end, whether they grow or not.
// `totals` are of all sites that were found, also of those whose rows are left out. Who was not
// judged is counted by reason: too many processes, too brief ones, too many sites in one process.
void growth_json(const struct growth_page *page, struct sink *sink)
{
	const struct growth *growth = page->growth;
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-growth-1");
	query_write_trace(page->asked, &json);
	json_kv_u64(&json, "min_bytes", growth->grown_min);
	json_kv_u64(&json, "live_bytes", growth->live.bytes);
	json_kv_u64(&json, "live_count", growth->live.count);
	json_kv_u64(&json, "processes_judged", growth->processes);
	json_kv_u64(&json, "processes_not_judged", growth->skipped);
	json_kv_u64(&json, "processes_too_brief", growth->brief);
	json_kv_u64(&json, "sites_not_judged", growth->places_skipped);
	json_kv_object(&json, "totals");
	for (enum trend_verdict v = TREND_GROWS; v < TREND_VERDICTS; v++) {
		const struct growth_list *list = &growth->lists[v];

		json_key(&json, growth_key(v));
		json_object_begin(&json);
		json_kv_u64(&json, "sites", list->total);
		json_kv_u64(&json, "grown_bytes", list->grown);
		json_kv_double(&json, "slope_bytes_per_s", list->slope_per_s);
		json_object_end(&json);
	}
	json_object_end(&json);
	json_kv_array(&json, "rows");
	rows = sheet_in_json(&json);
	growth_rows(page, TREND_GROWS, TREND_VERDICTS, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", rows.left_out);
	query_write_end(page->asked, &json);
}
