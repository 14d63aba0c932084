// Resident memory and who holds it, for programs: docs/schema/reconcile.json describes it.
//
// `lines` add up to smaps_bytes: each is one answer to whose the bytes are, and its rows say which
// stack or file. What is not known without smaps (shares, swap) is null, not 0. "untouched" and
// "purges" are beside that sum, since their bytes are not resident.
#include "report/find/rss_breakdown.h"
#include "report/table/query_write.h"

// Rows of all lines are in one list, the largest of a line first. `rows_max` (0: all) counts per
// line.
static void write_rows(const struct rss_breakdown *rss_breakdown, struct json *json, uint8_t line,
		       uint64_t rows_max)
{
	uint64_t shown = 0, left_out = 0;

	json_kv_array(json, "rows");
	for (size_t i = 0; i < rss_breakdown->rows_count; i++) {
		const struct rss_breakdown_row *row = &rss_breakdown->rows[i];
		const struct trace_file *file =
			reader_file(rss_breakdown->asked->reader, row->file);

		if (row->line != line)
			continue;
		if (rows_max && shown >= rows_max) {
			left_out++;
			continue;
		}
		shown++;
		json_object_begin(json);
		json_kv_u64(json, "count", row->count);
		json_kv_u64(json, "bytes", row->bytes);
		json_kv_text(json, "mapped_file", row->file && file ? file->path : NULL);
		moment_view_write_stack(rss_breakdown->asked, json, row->stack);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "rows_left_out", left_out);
}

// at_ns is when the snapshot was taken; blocks_at_ns is earlier where the blocks are those of a
// plateau. All lines are there, also those of 0 bytes.
void rss_breakdown_write_json(const struct rss_breakdown *rss_breakdown, struct sink *sink,
			      uint64_t rows_max)
{
	// By the number in the snapshot. One of a later version is null.
	static const char *const reasons[] = { "", "release", "exit", "growth", "asked" };
	const struct trace_snapshot *snapshot = rss_breakdown->header;
	bool smaps = !(snapshot->flags & TRACE_SNAPSHOT_NO_SMAPS);
	struct json json;

	json_begin(&json, sink, true, "tidemark-reconcile-1");
	json_kv_bool(&json, "complete", rss_breakdown->asked->complete);
	query_write_warnings(rss_breakdown->asked, &json);
	json_kv_u64(&json, "process",
		    reader_process(rss_breakdown->asked->reader, snapshot->process)->pid);
	json_kv_u64(&json, "process_id", snapshot->process);
	json_kv_u64(&json, "at_ns", snapshot->time_ns);
	json_kv_text(&json, "reason", snapshot->reason < 5 ? reasons[snapshot->reason] : NULL);
	json_kv_u64(&json, "events_between", snapshot->ended - snapshot->began);
	json_kv_object(&json, "between");
	json_kv_u64(&json, "allocations", rss_breakdown->between.allocations);
	json_kv_u64(&json, "allocated_bytes", rss_breakdown->between.allocated_bytes);
	json_kv_u64(&json, "frees", rss_breakdown->between.frees);
	json_kv_u64(&json, "calls", rss_breakdown->between.calls);
	json_kv_u64(&json, "calls_bytes", rss_breakdown->between.calls_bytes);
	json_object_end(&json);
	json_kv_bool(&json, "smaps_read", smaps);
	json_kv_u64(&json, "smaps_bytes", rss_breakdown->smaps_bytes);
	json_kv_u64_if(&json, "pss_bytes", smaps, rss_breakdown->pss_bytes);
	json_kv_u64_if(&json, "swap_bytes", smaps, rss_breakdown->swap_bytes);
	json_kv_u64(&json, "statm_bytes", snapshot->rss_bytes);
	json_kv_u64(&json, "vmhwm_bytes", snapshot->rss_bytes_max);
	json_kv_u64_if(&json, "rss_max_bytes", rss_breakdown->rss_max_bytes > 0,
		       rss_breakdown->rss_max_bytes);
	json_kv_i64(&json, "difference", rss_breakdown->difference);
	json_kv_string(&json, "allocator", rss_breakdown->glibc ? "glibc" : "other");
	json_kv_u64(&json, "blocks_at_ns",
		    rss_breakdown->plateau.bytes ? rss_breakdown->plateau.edge.time_ns
						 : snapshot->time_ns);
	json_kv_object(&json, "free_parts");
	for (int part = 0; part < RSS_BREAKDOWN_FREES; part++)
		json_kv_u64(&json, rss_breakdown_free_key((enum rss_breakdown_free)part),
			    rss_breakdown->frees[part]);
	json_object_end(&json);
	json_kv_array(&json, "lines");
	for (uint8_t line = 0; line < RSS_BREAKDOWN_LINES; line++) {
		json_object_begin(&json);
		json_kv_string(&json, "line", rss_breakdown_key((enum rss_breakdown_line)line));
		json_kv_u64(&json, "bytes", rss_breakdown->lines[line]);
		write_rows(rss_breakdown, &json, line, rows_max);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_kv_object(&json, "untouched");
	json_kv_u64(&json, "bytes", rss_breakdown->untouched);
	write_rows(rss_breakdown, &json, RSS_BREAKDOWN_UNTOUCHED, rows_max);
	json_object_end(&json);
	json_kv_object(&json, "purges");
	json_kv_u64(&json, "count", rss_breakdown->purges);
	json_kv_u64(&json, "bytes", rss_breakdown->purged);
	write_rows(rss_breakdown, &json, RSS_BREAKDOWN_PURGED, rows_max);
	json_object_end(&json);
	query_write_end(rss_breakdown->asked, &json);
}
