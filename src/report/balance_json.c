// Resident memory and who holds it, for programs: docs/schema/reconcile.json describes it.
#include "report/balance.h"
#include "report/query_write.h"

static void write_rows(const struct balance *balance, struct json *json, uint8_t line,
		       uint64_t rows_max)
{
	uint64_t shown = 0;

	json_key(json, "rows");
	json_array_begin(json);
	for (size_t i = 0; i < balance->rows_count; i++) {
		const struct balance_row *row = &balance->rows[i];
		const struct trace_file *file = reader_file(balance->asked->reader, row->file);

		if (row->line != line || (rows_max && shown >= rows_max))
			continue;
		shown++;
		json_object_begin(json);
		json_kv_u64(json, "count", row->count);
		json_kv_u64(json, "bytes", row->bytes);
		json_kv_string(json, "mapped_file", row->file && file ? file->path : "");
		moment_view_write_stack(balance->asked, json, row->stack);
		json_object_end(json);
	}
	json_array_end(json);
}

void balance_write_json(const struct balance *balance, struct sink *sink, uint64_t rows_max)
{
	static const char *const reasons[] = { "", "release", "exit", "growth", "asked" };
	const struct trace_snapshot *snapshot = balance->header;
	bool smaps = !(snapshot->flags & TRACE_SNAPSHOT_NO_SMAPS);
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-reconcile-1");
	json_kv_bool(&json, "complete", balance->asked->complete);
	query_write_warnings(balance->asked, &json);
	json_kv_u64(&json, "process",
		    reader_process(balance->asked->reader, snapshot->process)->pid);
	json_kv_u64(&json, "process_id", snapshot->process);
	json_kv_u64(&json, "at_ns", snapshot->time_ns);
	json_kv_string(&json, "reason", snapshot->reason < 5 ? reasons[snapshot->reason] : "");
	json_kv_u64(&json, "events_between", snapshot->ended - snapshot->began);
	json_key(&json, "between");
	json_object_begin(&json);
	json_kv_u64(&json, "allocations", balance->between.allocations);
	json_kv_u64(&json, "allocated_bytes", balance->between.allocated_bytes);
	json_kv_u64(&json, "frees", balance->between.frees);
	json_kv_u64(&json, "calls", balance->between.calls);
	json_kv_u64(&json, "calls_bytes", balance->between.calls_bytes);
	json_object_end(&json);
	json_kv_bool(&json, "smaps_read", smaps);
	json_kv_u64(&json, "smaps_bytes", balance->smaps_bytes);
	json_key(&json, "pss_bytes");
	if (smaps)
		json_u64(&json, balance->pss_bytes);
	else
		json_null(&json);
	json_kv_u64(&json, "swap_bytes", balance->swap_bytes);
	json_kv_u64(&json, "statm_bytes", snapshot->rss_bytes);
	json_kv_u64(&json, "vmhwm_bytes", snapshot->rss_bytes_max);
	json_kv_u64(&json, "rss_max_bytes", balance->rss_max_bytes);
	json_key(&json, "difference");
	json_i64(&json, balance->difference);
	json_kv_string(&json, "allocator", balance->glibc ? "glibc" : "other");
	json_key(&json, "blocks_at_ns");
	json_u64(&json, balance->plateau.bytes ? balance->plateau.edge.time_ns : snapshot->time_ns);
	json_key(&json, "free_parts");
	json_object_begin(&json);
	for (int part = 0; part < BALANCE_FREES; part++)
		json_kv_u64(&json, balance_free_key((enum balance_free)part), balance->frees[part]);
	json_object_end(&json);
	json_key(&json, "lines");
	json_array_begin(&json);
	for (uint8_t line = 0; line < BALANCE_LINES; line++) {
		json_object_begin(&json);
		json_kv_string(&json, "line", balance_key((enum balance_line)line));
		json_kv_u64(&json, "bytes", balance->lines[line]);
		write_rows(balance, &json, line, rows_max);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_key(&json, "untouched");
	json_object_begin(&json);
	json_kv_u64(&json, "bytes", balance->untouched);
	write_rows(balance, &json, BALANCE_UNTOUCHED, rows_max);
	json_object_end(&json);
	json_key(&json, "purges");
	json_object_begin(&json);
	json_kv_u64(&json, "count", balance->purges);
	json_kv_u64(&json, "bytes", balance->purged);
	write_rows(balance, &json, BALANCE_PURGED, rows_max);
	json_object_end(&json);
	json_object_end(&json);
	sink_text(sink, "\n");
}
