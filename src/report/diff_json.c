// A comparison for programs: docs/schema/diff.json describes the JSON.
#include "report/diff.h"
#include "report/lines.h"
#include "report/query_write.h"

#include <inttypes.h>

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
		json->pretty = false;
		json_kv_u64(json, "before_bytes", pair->side[0].bytes);
		json_kv_u64(json, "after_bytes", pair->side[1].bytes);
		json_kv_u64(json, "before_count", pair->side[0].count);
		json_kv_u64(json, "after_count", pair->side[1].count);
		json_key(json, "bytes");
		json_i64(json, diff_bytes(pair));
		json_key(json, "count");
		json_i64(json, diff_count(pair));
		json_object_end(json);
		json->pretty = true;
	}
}

static const char *exe_of(const struct diff_page *page, const process_id process[2])
{
	int side = process[1] != TRACE_NONE;
	const struct trace_process *found =
		reader_process(page->sides[side]->reader, process[side]);

	return found ? found->exe : NULL;
}

static const char *state_of(const struct diff_row *row)
{
	if (row->place[0].process == TRACE_NONE)
		return "new";
	return row->place[1].process == TRACE_NONE ? "gone" : "both";
}

static void write_row(struct json *json, const struct diff_page *page, const struct diff_row *row)
{
	const process_id process[2] = { row->place[0].process, row->place[1].process };
	int side = process[1] != TRACE_NONE;

	json_object_begin(json);
	json_kv_string(json, "state", state_of(row));
	json_kv_text(json, "exe", exe_of(page, process));
	write_figures(json, page->diff, row->figures);
	query_write_stack(page->sides[side], json, row->place[side].stack);
	json_object_end(json);
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

void diff_json(const struct diff_page *page, struct sink *sink)
{
	const struct diff *diff = page->diff;
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
	for (size_t i = 0; i < diff->rows_count; i++)
		write_row(&json, page, &diff->rows[i]);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", diff->rows_left_out);
	json_object_end(&json);
	sink_text(sink, "\n");
}

void diff_csv(const struct diff_page *page, struct sink *sink)
{
	const struct diff *diff = page->diff;

	page->sides[1]->rows_left_out += diff->rows_total - diff->rows_count;
	sink_text(sink, "state");
	for (int f = 0; f < DIFF_FIGURES; f++)
		sink_format(sink, ",%s_bytes,%s_count,%s_bytes_before,%s_count_before", keys[f],
			    keys[f], keys[f], keys[f]);
	sink_text(sink, "," LINES_CSV_PLACE "\r\n");
	for (size_t i = 0; i < diff->rows_count; i++) {
		const struct diff_row *row = &diff->rows[i];
		int side = row->place[1].process != TRACE_NONE;

		sink_text(sink, state_of(row));
		for (int f = 0; f < DIFF_FIGURES; f++)
			sink_format(sink, ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64,
				    diff_bytes(&row->figures[f]), diff_count(&row->figures[f]),
				    row->figures[f].side[0].bytes, row->figures[f].side[0].count);
		sink_text(sink, ",");
		lines_csv_place(sink, page->sides[side]->reader, page->sides[side]->names,
				row->place[side].process, row->place[side].stack);
		sink_text(sink, "\r\n");
	}
}
