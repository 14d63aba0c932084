#include "report/inquiry_write.h"

#include "report/lines.h"

#include <inttypes.h>

// ---- for people ----

void inquiry_write_headline(const struct inquiry *inquiry, struct paper *paper)
{
	const struct trace_info *info = reader_info(inquiry->reader);
	uint32_t processes = reader_processes_count(inquiry->reader);
	char from[24], to[24];
	char text[28];

	paper_foreign(paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      paper->width);
	sink_text(paper->sink, "\n");
	paper_format(paper, PAPER_DIM, "%s, %s events", str_duration(inquiry->duration_ns, from),
		     str_count(reader_stats(inquiry->reader)->events, text));
	if (processes == 1)
		paper_format(paper, PAPER_DIM, ", process %" PRIu32,
			     reader_process(inquiry->reader, 0)->pid);
	else
		paper_format(paper, PAPER_DIM, ", %" PRIu32 " processes", processes);
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < inquiry->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", inquiry->warnings[i]);
	if (inquiry->from_given || inquiry->to_given)
		paper_format(paper, PAPER_PLAIN, "window: from %s to %s\n",
			     str_duration(inquiry->from_ns, from),
			     str_duration(inquiry->to_ns, to));
	if (query_narrows(&inquiry->selection.query))
		paper_paragraph(paper, PAPER_PLAIN, "filtered",
				"the figures below are those of the selected allocations only");
	sink_text(paper->sink, "\n");
}

void inquiry_write_symbol_notes(const struct inquiry *inquiry, struct paper *paper)
{
	const char *const *lines;
	size_t count = symbols_notes(inquiry->symbols, &lines);

	for (size_t i = 0; i < count; i++)
		paper_paragraph(paper, PAPER_WARNING, "symbols", lines[i]);
}

// ---- for programs ----

void inquiry_write_trace_as(const struct inquiry *inquiry, struct json *json, const char *key)
{
	const struct trace_info *info = reader_info(inquiry->reader);

	json_key(json, key);
	json_object_begin(json);
	json_kv_bool(json, "complete", reader_complete(inquiry->reader));
	json_kv_u64(json, "events", reader_stats(inquiry->reader)->events);
	json_kv_u64(json, "duration_ns", inquiry->duration_ns);
	json_kv_string(json, "command", info->command);
	json_key(json, "warnings");
	json_array_begin(json);
	for (size_t i = 0; i < inquiry->warnings_count; i++)
		json_string(json, inquiry->warnings[i]);
	json_array_end(json);
	json_kv_u64(json, "from_ns", inquiry->from_ns);
	json_kv_u64(json, "to_ns", inquiry->to_ns);
	json_object_end(json);
}

void inquiry_write_trace(const struct inquiry *inquiry, struct json *json)
{
	inquiry_write_trace_as(inquiry, json, "trace");
	json_kv_u64(json, "from_ns", inquiry->from_ns);
	json_kv_u64(json, "to_ns", inquiry->to_ns);
	json_kv_string(json, "layer", inquiry->layer == WINDOW_VM ? "vm" : "heap");
}

void inquiry_write_stack(const struct inquiry *inquiry, struct json *json, stack_id id)
{
	struct names_stack stack = names_stack(inquiry->names, id);

	json_kv_bool(json, "stack_complete",
		     !(stack.flags & (TRACE_STACK_INCOMPLETE | TRACE_STACK_CUT)));
	json_kv_u64(json, "user_frame", stack.user);
	json_key(json, "stack");
	lines_json(json, &stack);
}

void inquiry_write_place(const struct inquiry *inquiry, struct json *json, process_id id,
			 stack_id stack)
{
	const struct trace_process *process = reader_process(inquiry->reader, id);

	json_kv_u64(json, "process", process ? process->pid : 0);
	json_kv_u64(json, "process_id", id);
	json_kv_string(json, "exe", process ? process->exe : "");
	inquiry_write_stack(inquiry, json, stack);
}
