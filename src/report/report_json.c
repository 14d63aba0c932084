// The report for programs: docs/schema/report.json describes it.
//
// Texts of the trace (commands, paths, names) are the program's own bytes: what is not UTF-8 in
// them is written as U+FFFD (base/json.h), so that the document is JSON whatever was recorded.
// Figures that are not known are null, and never 0.
#include "report/ask/own_heap.h"
#include "report/report.h"

#include "base/json.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

// What samples and imported sums cannot tell is null.
static void write_temporary(struct json *json, const struct report *report,
			    struct heap_amount amount)
{
	if (report_knows(report, SITES_TEMPORARY))
		lines_json_amount(json, "temporary", amount);
	else
		json_kv_null(json, "temporary");
}

void report_json_life(struct json *json, const struct trace_process *process)
{
	char exit[32];

	json_kv_text(json, "exe", process->exe);
	json_kv_array(json, "args");
	for (uint32_t i = 0; i < process->args_count; i++)
		json_string(json, process->args[i]);
	json_array_end(json);
	json_kv_text(json, "process_title", process->title);
	json_kv_string(json, "exit", report_exit(process, exit));
	json_kv_u64(json, "began_ns", process->began_ns);
	json_kv_u64_if(json, "ended_ns", process->ended_ns != UINT64_MAX, process->ended_ns);
}

// Frees of what no allocation is known of. `before` of them are of blocks that an attached process
// had already; the heap counts these among the inherited. Filters that choose by stack or size
// cannot judge such frees: null then.
static void write_strange_frees(struct json *json, const struct report *report,
				const struct heap_counts *counts, uint64_t before)
{
	bool known = heap_judges_frees(report->heap);

	json_kv_u64_if(json, "inherited_frees", known, counts->inherited_frees - before);
	json_kv_u64_if(json, "before_frees", known, before);
	lines_json_amount(json, "before", counts->before);
	json_kv_u64_if(json, "orphan_frees", known && !reader_info(report->asked->reader)->budget,
		       counts->orphan_frees);
	json_kv_u64(json, "lost_frees", counts->lost_frees);
}

static void write_counts(struct json *json, const struct report *report,
			 const struct heap_counts *counts)
{
	json_kv_u64(json, "allocations", counts->allocated.count);
	json_kv_u64(json, "frees", counts->frees);
	json_kv_u64_if(json, "reallocations", !reader_is_estimated(report->asked->reader),
		       counts->reallocations);
	json_kv_u64(json, "failed", counts->failed);
	json_kv_u64(json, "refused_frees", counts->refused_frees);
	json_kv_u64(json, "allocated_bytes", counts->allocated.bytes);
	json_kv_u64_if(json, "peak_bytes", report_knows(report, SITES_PEAK), counts->peak.bytes);
}

// All processes are there, also one that allocated nothing. "id" is the place in the trace's list,
// which is unique; a pid may come twice.
static void write_process(struct json *json, const struct report *report, process_id id)
{
	const struct trace_process *process = reader_process(report->asked->reader, id);
	const struct trace_process *parent = reader_process(report->asked->reader, process->parent);
	const struct heap_counts *counts = heap_process(report->heap, id);
	bool peak = report_knows(report, SITES_PEAK);
	uint64_t before = report_before(report, id);

	json_object_begin(json);
	json_kv_u64(json, "id", id);
	json_kv_u64(json, "pid", process->pid);
	json_kv_u64(json, "generation", process->generation);
	json_kv_u64_if(json, "parent", parent, parent ? parent->pid : 0);
	json_kv_u64_if(json, "parent_id", parent, process->parent);
	json_kv_bool(json, "forked", process->start == TRACE_START_FORK);
	json_kv_bool(json, "attached", process->start == TRACE_START_ATTACH);
	report_json_life(json, process);
	write_counts(json, report, counts);
	json_kv_u64_if(json, "peak_ns", peak && counts->peak.bytes > 0, counts->peak_ns);
	lines_json_amount(json, "live_at_exit", counts->live_at_exit);
	write_temporary(json, report, counts->temporary);
	write_strange_frees(json, report, counts, before);
	json_object_end(json);
}

// Whose recording it is, what is wrong with it, and its processes.
static void write_trace(struct json *json, const struct report *report)
{
	const struct heap_totals *totals = heap_totals(report->heap);
	const struct trace_info *info = reader_info(report->asked->reader);
	uint64_t end_ns = 0;
	bool lacks = reader_lacks_events(report->asked->reader, &end_ns);

	json_kv_object(json, "trace");
	json_kv_bool(json, "complete", report->complete);
	json_kv_u64(json, "events", totals->events);
	json_kv_u64(json, "events_lost", totals->events_lost);
	json_kv_bool(json, "sampled", reader_is_estimated(report->asked->reader));
	json_kv_u64_if(json, "sample_bytes", info->sample_bytes > 0, info->sample_bytes);
	json_kv_u64(json, "duration_ns", totals->duration_ns);
	json_kv_u64_if(json, "events_end_ns", lacks, end_ns);
	json_kv_u64_if(json, "began_unix_ns", info->began_unix_ns > 0, info->began_unix_ns);
	json_kv_text(json, "command", info->command);
	json_kv_text(json, "directory", info->directory);
	json_kv_text(json, "tool", info->tool);
	json_kv_text(json, "host", info->host);
	json_kv_array(json, "warnings");
	for (size_t i = 0; i < report->asked->warnings_count; i++)
		json_string(json, report->asked->warnings[i]);
	json_array_end(json);
	json_kv_array(json, "processes");
	for (process_id id = 0; id < reader_processes_count(report->asked->reader); id++)
		if (query_has_process(&report->asked->selection.query, id))
			write_process(json, report, id);
	json_array_end(json);
	json_object_end(json);
}

// How far the totals may be off: standard errors, of bytes or (calls) of counts.
static void write_errors(struct json *json, const struct report *report)
{
	json_key(json, "standard_errors");
	if (!reader_is_estimated(report->asked->reader)) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	for (int i = 0; i < SITES_QUESTIONS_COUNT; i++) {
		enum sites_question question = (enum sites_question)i;
		double variance = report->sites.sums[question].variance;

		// Samples do not tell what is temporary, so there is no error of it.
		if (question == SITES_TEMPORARY)
			continue;
		json_kv_u64(json, sites_key(question), sites_error(variance));
	}
	json_object_end(json);
}

// Calls on virtual memory, tidemark's own left out.
static void write_vm(struct json *json, const struct report *report)
{
	const struct space_totals *totals = &report->whole.vm;

	json_kv_object(json, "vm");
	json_kv_object(json, "calls");
	for (int call = 0; call < SPACE_CALLS_COUNT; call++) {
		json_key(json, space_call_word((enum space_call)call));
		lines_json_begin(json);
		json_kv_u64(json, "count", totals->calls[call].count);
		json_kv_u64(json, "failed", totals->calls[call].failed);
		json_kv_u64(json, "bytes", totals->calls[call].bytes);
		lines_json_end(json);
	}
	json_object_end(json);
	json_key(json, "purges");
	lines_json_begin(json);
	json_kv_u64(json, "count", totals->purges);
	json_kv_u64(json, "bytes", totals->purged_bytes);
	lines_json_end(json);
	json_kv_u64(json, "peak_bytes", totals->committed_peak_bytes);
	json_kv_u64_if(json, "rss_peak_bytes", report->rss_peak_bytes > 0, report->rss_peak_bytes);
	json_kv_u64_if(json, "rss_peak_process_id", report->rss_peak_bytes > 0, report->rss_peak);
	json_object_end(json);
}

// What the program named through tidemark.h.
static void write_pools(struct json *json, const struct report *report)
{
	const struct trace_heap *pool = report_next_pool(report, 0);

	json_kv_array(json, "pools");
	for (; pool; pool = report_next_pool(report, pool->id)) {
		const struct pool_total *total = pool_totals_get(report->whole.pools, pool->id);
		const struct trace_process *process =
			reader_process(report->asked->reader, pool->process);

		json_object_begin(json);
		json_kv_string(json, "name", pool->name);
		json_kv_u64_if(json, "process", process, process ? process->pid : 0);
		json_kv_u64(json, "process_id", pool->process);
		json_kv_u64(json, "allocations", total->allocated.count);
		json_kv_u64(json, "allocated_bytes", total->allocated.bytes);
		json_kv_u64(json, "frees", total->frees);
		json_kv_u64(json, "unknown_frees", total->unknown_frees);
		json_kv_u64(json, "resets", total->resets);
		json_kv_u64(json, "peak_bytes", total->peak.bytes);
		json_kv_u64(json, "peak_count", total->peak.count);
		json_kv_u64_if(json, "peak_ns", total->peak.bytes > 0, total->peak_ns);
		lines_json_amount(json, "live_at_end", total->live);
		json_object_end(json);
	}
	json_array_end(json);
}

// null: the recording was not to find it out, or that was not possible.
static void write_reached(struct json *json, const struct reached *reached)
{
	json_key(json, "reachability");
	if (!reached->known) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	for (uint8_t state = 1; state < TRACE_REACH_STATES_COUNT; state++)
		lines_json_amount(json, reach_state_word(state), reached->states[state]);
	json_object_end(json);
}

static void write_own_heap(void *context, const struct report_own_heap *heap)
{
	struct json *json = context;

	json_object_begin(json);
	json_kv_bool(json, "outside", heap->outside);
	json_kv_text(json, "heap", heap->heap);
	json_kv_u64_if(json, "committed_bytes", heap->bytes > 0, heap->bytes);
	json_kv_string(json, "text", heap->text);
	json_object_end(json);
}

// The totals; names and units are the schema's.
static void write_heap(struct json *json, const struct report *report)
{
	const struct heap_totals *totals = heap_totals(report->heap);
	const struct heap_counts *counts = &totals->counts;
	uint64_t before = report_before(report, TRACE_NONE);
	bool peak = report_knows(report, SITES_PEAK);
	uint32_t late, together = report_peak_processes(report, &late);
	static const char *const heaps[] = {
		[OWN_HEAP_NO_LANGUAGE] = NULL,
		[OWN_HEAP_NOT_RECORDED] = "not recorded",
		[OWN_HEAP_RECORDED] = "recorded",
	};

	json_kv_object(json, "heap");
	write_counts(json, report, counts);
	json_kv_u64_if(json, "peak_low_bytes", peak, totals->peak_low_bytes);
	json_kv_u64_if(json, "peak_high_bytes", peak, totals->peak_high_bytes);
	json_kv_u64_if(json, "peak_count", peak, counts->peak.count);
	json_kv_u64_if(json, "peak_ns", peak && counts->peak.bytes > 0, counts->peak_ns);
	json_kv_u64_if(json, "peak_event", peak && counts->peak.bytes > 0, counts->peak_number);
	json_kv_u64_if(json, "peak_ends_late", peak && counts->peak.bytes > 0,
		       together > 1 ? late : 0);
	lines_json_amount(json, "live_at_exit", counts->live_at_exit);
	write_reached(json, &report->reached);
	write_temporary(json, report, counts->temporary);
	write_strange_frees(json, report, counts, before);
	write_errors(json, report);
	json_kv_text(json, "language_heaps", heaps[own_heap_languages(report->asked)]);
	json_kv_array(json, "own_heaps");
	report_own_heaps(report, write_own_heap, json);
	json_array_end(json);
	json_object_end(json);
}

// Rows that were left out are counted per question, after all of them: the sheet knows them only
// when it was written.
void report_json(struct report *report, struct sink *sink)
{
	uint64_t left_out[SITES_QUESTIONS_COUNT];
	struct json json;

	json_begin(&json, sink, true, "tidemark-report-1");
	write_trace(&json, report);
	write_heap(&json, report);
	write_vm(&json, report);
	write_pools(&json, report);
	json_kv_object(&json, "sites");
	for (int i = 0; i < SITES_QUESTIONS_COUNT; i++) {
		enum sites_question question = (enum sites_question)i;
		struct sheet rows = sheet_in_json(&json);

		json_key(&json, sites_key(question));
		json_array_begin(&json);
		report_rows(report, question, question + 1, &rows);
		json_array_end(&json);
		left_out[i] = rows.left_out;
	}
	json_object_end(&json);
	json_kv_object(&json, "sites_left_out");
	for (int i = 0; i < SITES_QUESTIONS_COUNT; i++)
		json_kv_u64(&json, sites_key((enum sites_question)i), left_out[i]);
	json_object_end(&json);
	query_write_end(report->asked, &json);
}
