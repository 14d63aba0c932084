// A window's table for programs: docs/schema/window.json describes it.
#include "report/table/table.h"

#include "report/table/query_write.h"

static void write_total(struct json *json, const struct table *table)
{
	json_key(json, "total");
	if (table->asked->layers == (WINDOW_HEAP | WINDOW_VM)) {
		// Layers never add up; their rows are their totals.
		json_null(json);
		return;
	}
	table_write_total(json, table);
}

// `rows_left_out` is after the rows, as the sheet counts what it leaves out while it writes.
void table_json(struct table *table, struct sink *sink)
{
	const struct query_context *asked = table->asked;
	const struct keys *keys = &table->options->keys;
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-window-1");
	json_kv_u64(&json, "from_ns", asked->from_ns);
	json_kv_u64(&json, "to_ns", asked->to_ns);
	json_kv_bool(&json, "complete", reader_complete(asked->reader));
	json_kv_bool(&json, "sampled", reader_is_estimated(asked->reader));
	json_kv_bool(&json, "exit_frees", asked->options.exit_frees);
	json_kv_array(&json, "by");
	for (size_t i = 0; i < keys->count; i++)
		json_string(&json, keys_word(keys->list[i]));
	json_array_end(&json);
	json_kv_array(&json, "warnings");
	for (size_t i = 0; i < asked->warnings_count; i++)
		json_string(&json, asked->warnings[i]);
	json_array_end(&json);
	json_kv_array(&json, "rows");
	rows = sheet_in_json(&json);
	table_rows(table, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", rows.left_out);
	write_total(&json, table);
	query_write_end(asked, &json);
}
