// A comparison for programs: docs/schema/diff.json describes the JSON.
#include "report/find/diff.h"
#include "report/table/query_write.h"

static const char *const keys[DIFF_FIGURES] = {
	[DIFF_LIVE] = "live",
	[DIFF_PEAK] = "peak",
	[DIFF_ALLOCATED] = "allocated",
	[DIFF_TEMPORARY] = "temporary",
};

static void write_figures(struct json *json, const struct diff *diff,
			  const struct diff_pair figures[DIFF_FIGURES])
{
	for (int f = 0; f < DIFF_FIGURES; f++) {
		const struct diff_pair *pair = &figures[f];

		json_key(json, keys[f]);
		if (f == DIFF_TEMPORARY && !diff->temporary) {
			json_null(json);
			continue;
		}
		json_object_begin(json);
		json_line_begin(json);
		json_kv_u64(json, "before_bytes", pair->side[0].bytes);
		json_kv_u64(json, "after_bytes", pair->side[1].bytes);
		json_kv_u64(json, "before_count", pair->side[0].count);
		json_kv_u64(json, "after_count", pair->side[1].count);
		json_key(json, "bytes");
		json_i64(json, diff_bytes(pair));
		json_key(json, "count");
		json_i64(json, diff_count(pair));
		json_object_end(json);
		json_line_end(json);
	}
}

static const char *exe_of(const struct diff_page *page, const process_id process[2])
{
	int side = process[1] != TRACE_NONE;
	const struct trace_process *found =
		reader_process(page->sides[side]->reader, process[side]);

	return found ? found->exe : NULL;
}

static void write_process(struct json *json, const struct diff_page *page,
			  const struct diff_process *row)
{
	json_object_begin(json);
	json_kv_text(json, "exe", exe_of(page, row->process));
	json_kv_u64_if(json, "before_id", row->process[0] != TRACE_NONE, row->process[0]);
	json_kv_u64_if(json, "after_id", row->process[1] != TRACE_NONE, row->process[1]);
	write_figures(json, page->diff, row->figures);
	json_object_end(json);
}

// ---- rows ----

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct diff_page *page = sheet->context;
	const struct diff_row *row = of;
	int side = row->place[1].process != TRACE_NONE;

	return (struct sheet_site){ page->sides[side], row->place[side].process,
				    row->place[side].stack };
}

static struct sheet_cell get_state(const struct sheet_at *at)
{
	const struct diff_row *row = at->row;

	return sheet_text(row->place[0].process == TRACE_NONE   ? "new"
			  : row->place[1].process == TRACE_NONE ? "gone"
								: "both");
}

// A figure, and which part of it.
enum { BYTES, COUNT, BYTES_BEFORE, COUNT_BEFORE, PARTS };

static struct sheet_cell get_figure(const struct sheet_at *at)
{
	const struct diff_row *row = at->row;
	const struct diff_pair *pair = &row->figures[at->column->at / PARTS];
	const uint64_t parts[PARTS] = {
		[BYTES] = (uint64_t)diff_bytes(pair),
		[COUNT] = (uint64_t)diff_count(pair),
		[BYTES_BEFORE] = pair->side[0].bytes,
		[COUNT_BEFORE] = pair->side[0].count,
	};

	return sheet_u64(true, parts[at->column->at % PARTS]);
}

// In JSON a figure is an object.
static void write_row(const struct sheet_at *at)
{
	const struct diff_page *page = at->sheet->context;
	const struct diff_row *row = at->row;

	json_kv_text(at->sheet->json, "exe", at->sheet->process ? at->sheet->process->exe : NULL);
	write_figures(at->sheet->json, page->diff, row->figures);
	sheet_write_stack(at);
}

#define PART(figure, part, name, kind, flags, says)                                         \
	{                                                                                   \
		name, kind, SHEET_FLAT_ONLY | (flags), get_figure, (figure)*PARTS + (part), \
			.meaning = says                                                     \
	}
#define FIGURE(figure, name, meaning)                                                          \
	PART(figure, BYTES, name "_bytes", SHEET_BYTES, SHEET_CHANGE, meaning ": the change"), \
		PART(figure, COUNT, name "_count", SHEET_COUNT, SHEET_CHANGE,                  \
		     meaning ": the change"),                                                  \
		PART(figure, BYTES_BEFORE, name "_bytes_before", SHEET_BYTES, 0,               \
		     meaning ", before"),                                                      \
		PART(figure, COUNT_BEFORE, name "_count_before", SHEET_COUNT, 0,               \
		     meaning ", before")
static const struct sheet_column columns[] = {
	{ "state", SHEET_TEXT, 0, get_state, 0,
	  .meaning = "new, gone, or both: where the stack is" },
	FIGURE(DIFF_LIVE, "live", "held at the end"),
	FIGURE(DIFF_PEAK, "peak", "held at the peak"),
	FIGURE(DIFF_ALLOCATED, "allocated", "allocated"),
	FIGURE(DIFF_TEMPORARY, "temporary", "freed before the next allocation"),
	{ .kind = SHEET_SITE, .flags = SHEET_FLAT_ONLY },
	{ .kind = SHEET_OBJECT, .flags = SHEET_JSON_ONLY, .json = write_row },
};

void diff_rows(const struct diff_page *page, struct sheet *sheet)
{
	const struct diff *diff = page->diff;

	sheet->context = page;
	sheet->site_of = site_of;
	sheet->left_out = diff->rows_total - diff->rows_count;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < diff->rows_count; i++)
		sheet_row(sheet, &diff->rows[i]);
	sheet_end(sheet);
}

void diff_json(const struct diff_page *page, struct sink *sink)
{
	const struct diff *diff = page->diff;
	struct sheet rows;
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-diff-1");
	query_write_trace_as(page->sides[0], &json, "before");
	query_write_trace_as(page->sides[1], &json, "after");
	json_kv_string(&json, "layer", page->sides[0]->layers == WINDOW_VM ? "vm" : "heap");
	json_kv_string(&json, "sort", diff_order_words[diff->order]);
	json_key(&json, "total");
	json_object_begin(&json);
	write_figures(&json, diff, diff->totals);
	json_object_end(&json);
	json_key(&json, "stacks");
	json_object_begin(&json);
	json_kv_u64(&json, "new", diff->appeared);
	json_kv_u64(&json, "gone", diff->vanished);
	json_kv_u64(&json, "changed", diff->changed);
	json_kv_u64(&json, "same", diff->same);
	json_object_end(&json);
	json_key(&json, "processes");
	json_array_begin(&json);
	for (size_t i = 0; i < diff->processes_count; i++)
		write_process(&json, page, &diff->processes[i]);
	json_array_end(&json);
	json_kv_u64(&json, "rows_total", diff->rows_total);
	json_key(&json, "rows");
	json_array_begin(&json);
	rows = sheet_in_json(&json);
	diff_rows(page, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", diff->rows_left_out);
	json_object_end(&json);
	sink_text(sink, "\n");
}
