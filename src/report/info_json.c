// What is in a trace, for programs: docs/schema/info.json describes it.
//
// Addresses are texts ("0x7f0eb4294000"). A time since 1970 is a number above 2^53, written in full
// as JSON allows; who reads it as a double loses its last digits, some 200 ns.
#include "report/ask/own_heap.h"
#include "report/info.h"

#include "base/json.h"
#include "base/mem.h"
#include "report/report.h"
#include "trace/asm_words.h"
#include "trace/defs.h"
#include "trace/label.h"

// Labels of `record --label` are pairs in one text (trace/label.h); a name that is there twice is
// written twice.
static void json_labels(struct json *json, const char *text)
{
	struct label label;

	json_kv_object(json, "labels");
	while (label_next(&text, &label)) {
		char *name = mem_copy_bytes(label.name, label.name_length);
		char *value = mem_copy_bytes(label.value, label.value_length);

		json_kv_string(json, name, value);
		MEM_FREE(name, value);
	}
	json_object_end(json);
}

// With --max-overhead a recording turns from all calls to samples and back: at what time, and from
// then on with which mean distance (null: each call).
static void write_turns(struct json *json, const struct reader *reader)
{
	size_t count;
	const struct trace_turn *turns = reader_turns(reader, &count);

	json_kv_array(json, "turns");
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json);
		json_kv_u64(json, "time_ns", turns[i].time_ns);
		json_kv_u64_if(json, "sample_bytes", turns[i].log2 > 0,
			       UINT64_C(1) << turns[i].log2);
		json_object_end(json);
	}
	json_array_end(json);
}

// What the preamble and the head say, then what only a scan or the end does. Times of a clock that
// has no tick are exact to the nanosecond: tick_ns is null then.
static void json_trace(struct json *json, const struct info *info)
{
	const struct trace_info *head = reader_info(info->reader);
	const struct trace_end *end = reader_end(info->reader);
	bool ticks = end && head->tick_ns > 0;
	struct str text = { 0 };

	json_kv_object(json, "trace");
	json_kv_string(json, "file", info->path);
	json_kv_u64(json, "bytes", reader_bytes(info->reader));
	str_format(&text, "%u.%u", head->version_major, head->version_minor);
	json_kv_string(json, "format", text.text);
	json_kv_bool(json, "complete", info->whole);
	json_kv_string(json, "problem", info->whole ? NULL : info->wrong.text);
	str_clear(&text);
	str_add_hex(&text, head->recording_id, sizeof head->recording_id);
	json_kv_string(json, "recording_id", text.text);
	json_kv_u64_if(json, "began_unix_ns", head->began_unix_ns > 0, head->began_unix_ns);
	json_kv_u64(json, "duration_ns", info_duration(info));
	json_kv_text(json, "tool", head->tool);
	json_kv_text(json, "host", head->host);
	json_kv_text(json, "command", head->command);
	json_kv_text(json, "directory", head->directory);
	json_kv_text(json, "options", head->options);
	json_labels(json, head->labels);
	json_kv_bool(json, "labels_differ", defs_has_word(head->options, "labels-differ"));
	json_kv_u64_if(json, "sample_bytes", head->sample_bytes > 0, head->sample_bytes);
	write_turns(json, info->reader);
	json_kv_u64_if(json, "tick_ns", head->tick_ns > 0, head->tick_ns);
	json_kv_u64_if(json, "tick_median_ns", ticks, ticks ? end->tick_median_ns : 0);
	json_kv_u64_if(json, "tick_worst_ns", ticks, ticks ? end->tick_worst_ns : 0);
	json_kv_u64(json, "unknown_records", reader_unknown(info->reader));
	json_object_end(json);
	str_fini(&text);
}

// `total` counts calls on malloc's heap, a realloc once; `others` are all other events: calls on
// virtual memory and on other heaps, second halves of reallocs, and what an attached process had
// before.
static void json_events(struct json *json, const struct info *info)
{
	json_kv_object(json, "events");
	json_kv_u64(json, "total", info->calls);
	json_kv_u64(json, "others", info->events - info->calls);
	json_kv_u64(json, "lost", info_events_lost(info));
	json_kv_object(json, "by_kind");
	for (uint8_t kind = 1; kind < INFO_KINDS; kind++)
		if (asm_words_event(kind))
			json_kv_u64(json, asm_words_event(kind), info->kinds[kind]);
	json_object_end(json);
	json_key(json, "bytes_per_event");
	if (info->events > 0)
		json_double(json, info_bytes_per_event(info));
	else
		json_null(json);
	json_object_end(json);
}

// An allocator without a file of its own is in the program's.
static void json_allocators(struct json *json, const struct trace_process *process)
{
	json_kv_array(json, "allocators");
	for (uint32_t i = 0; i < process->allocators_count; i++) {
		const struct trace_allocator *each = &process->allocators[i];

		json_object_begin(json);
		json_kv_string(json, "name", each->name);
		json_kv_string(json, "file", each->file ? each->file : process->exe);
		json_kv_string(json, "seen", info_seen(each));
		json_object_end(json);
	}
	json_array_end(json);
}

// Peaks and faults are from samples of /proc. A process that was never sampled has null and not 0.
static void json_processes(struct json *json, const struct info *info)
{
	json_kv_array(json, "processes");
	for (process_id id = 0; id < reader_processes_count(info->reader); id++) {
		const struct trace_process *process = reader_process(info->reader, id);
		bool measured = process->rss_max_bytes > 0 || process->minor_faults > 0;

		json_object_begin(json);
		json_kv_u64(json, "id", id);
		json_kv_u64(json, "pid", process->pid);
		json_kv_u64(json, "generation", process->generation);
		json_kv_u64_if(json, "parent_id", process->parent != TRACE_NONE, process->parent);
		json_kv_string(json, "start",
			       process->start == TRACE_START_FORK     ? "fork"
			       : process->start == TRACE_START_ATTACH ? "attach"
								      : "exec");
		json_kv_u64(json, "bits", process->bits);
		report_json_life(json, process);
		json_kv_u64(json, "threads", info->process_threads[id]);
		json_kv_u64(json, "events", info->process_events[id]);
		json_kv_string(json, "memory_calls", info_calls(process));
		json_kv_text(json, "memory_calls_why", process->calls_why);
		json_kv_u64(json, "calls_elsewhere", process->calls_elsewhere);
		json_allocators(json, process);
		json_kv_text(json, "interpreter", process->interpreter);
		json_kv_bool(json, "interpreter_read", process->interpreter_read);
		json_kv_text(json, "interpreter_advice", own_heap_jit(info->reader, process));
		json_kv_text(json, "own_heap", own_heap_of(process));
		json_kv_u64_if(json, "rss_max_bytes", process->rss_max_bytes > 0,
			       process->rss_max_bytes);
		json_kv_u64_if(json, "pss_max_bytes", process->pss_max_bytes > 0,
			       process->pss_max_bytes);
		json_kv_u64_if(json, "swap_max_bytes", measured, process->swap_max_bytes);
		json_kv_u64_if(json, "minor_faults", measured, process->minor_faults);
		json_kv_u64_if(json, "major_faults", measured, process->major_faults);
		json_object_end(json);
	}
	json_array_end(json);
}

// Module 0 is none.
static void json_modules(struct json *json, const struct info *info)
{
	json_kv_array(json, "modules");
	for (module_id id = 1; id < reader_modules_count(info->reader); id++) {
		const struct trace_module *module = reader_module(info->reader, id);
		struct str build_id = { 0 };

		str_add_hex(&build_id, module->build_id, module->build_id_length);
		json_object_begin(json);
		json_kv_u64(json, "process_id", module->process);
		json_kv_string(json, "path", module->path);
		json_kv_string(json, "build_id", build_id.length ? build_id.text : NULL);
		json_kv_hex(json, "start", module->start);
		json_kv_hex(json, "end", module->end);
		json_object_end(json);
		str_fini(&build_id);
	}
	json_array_end(json);
}

// Heap 0 is malloc's and not listed. A heap of Windows has a handle and no name, one of a program's
// own pool a name.
static void json_heaps(struct json *json, const struct info *info)
{
	json_kv_array(json, "heaps");
	for (heap_id id = 1; id < reader_heaps_count(info->reader); id++) {
		const struct trace_heap *heap = reader_heap(info->reader, id);
		uint64_t flags = UINT64_MAX, count;

		if (info_heap_is_echo(info, id))
			continue;
		json_object_begin(json);
		json_kv_u64(json, "process_id", heap->process);
		// A language's heap has both, and goes by its name.
		json_key(json, "handle");
		if (heap->handle != 0 && !heap->name[0])
			json_hex(json, heap->handle);
		else
			json_null(json);
		json_kv_string(json, "name",
			       heap->handle != 0 && !heap->name[0] ? NULL : heap->name);
		json_kv_u64_if(json, "created_flags", heap->created, heap->flags);
		json_kv_array(json, "calls");
		while (info_next_flags(info, id, &flags, &count)) {
			json_object_begin(json);
			json_kv_u64(json, "flags", flags);
			json_kv_u64(json, "count", count);
			json_object_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

// Of a trace that was cut, what the end alone knows is null. Stack 0 and frame 0 are none, and not
// counted. A message is written once, and not how often it was said.
static void json_rest(struct json *json, const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct reader_stats *stats = reader_stats(reader);
	const struct trace_end none = { 0 };
	const struct trace_end *end = reader_end(reader) ? reader_end(reader) : &none;
	bool ended = end != &none; // what only the end of a recording says
	struct info_snapshots snapshots = info_snapshots(info);

	json_kv_object(json, "stacks");
	json_kv_u64(json, "stacks", reader_stacks_count(reader) - 1);
	json_kv_u64(json, "frames", reader_frames_count(reader) - 1);
	json_kv_u64_if(json, "incomplete", ended, end->stacks_incomplete);
	json_kv_u64(json, "deep", info->deep);
	json_kv_u64_if(json, "verified", ended, end->stacks_verified);
	json_kv_u64_if(json, "mismatched", ended, end->stacks_mismatched);
	json_object_end(json);
	json_kv_object(json, "notes");
	json_kv_u64(json, "marks", info->notes[TRACE_NOTE_MARK]);
	json_kv_u64(json, "rss", info->notes[TRACE_NOTE_RSS]);
	json_kv_u64(json, "pss", info->notes[TRACE_NOTE_PSS]);
	json_kv_u64(json, "pss_counted", info->shares_counted);
	json_kv_array(json, "messages");
	for (size_t i = 0; i < info->messages_count; i++)
		json_string(json, info->messages[i].text);
	json_array_end(json);
	json_object_end(json);
	json_kv_object(json, "cost");
	json_kv_u64_if(json, "guest_bytes_peak", ended, end->guest_bytes_peak);
	json_kv_u64_if(json, "collector_bytes_peak", ended, end->collector_bytes_peak);
	json_kv_u64_if(json, "collector_cpu_ns", ended, end->collector_cpu_ns);
	json_kv_u64_if(json, "waited_ns", ended, end->waited_ns);
	json_object_end(json);
	json_kv_object(json, "snapshots");
	json_kv_u64(json, "count", snapshots.count);
	json_kv_u64(json, "cost_ns", snapshots.cost_ns);
	json_kv_u64(json, "by_pages", snapshots.by_pages);
	json_kv_u64(json, "missed", snapshots.missed);
	json_object_end(json);
	json_kv_object(json, "blocks");
	json_kv_u64(json, "total", stats->blocks);
	json_kv_u64(json, "events", stats->events_blocks);
	json_kv_u64(json, "definitions", stats->defs_blocks);
	json_kv_u64(json, "bundles", stats->bundle_blocks);
	json_kv_u64(json, "lost", reader_skipped(reader));
	json_kv_u64(json, "events_bytes", stats->events_bytes);
	json_kv_u64(json, "definitions_bytes", stats->defs_bytes);
	json_kv_u64(json, "bundles_bytes", stats->bundle_bytes);
	json_object_end(json);
}

void info_write_json(const struct info *info, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink, true, "tidemark-info-1");
	json_trace(&json, info);
	json_events(&json, info);
	json_processes(&json, info);
	json_modules(&json, info);
	json_heaps(&json, info);
	json_rest(&json, info);
	json_end(&json);
}
