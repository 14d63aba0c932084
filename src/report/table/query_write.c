// For example, above a table of growth:
//
//     ./app --serve
//     3.2 s, 1,234 events, process 42
//     warning: recording was paused, first at 1.0 s: …
//     window: from 1.0 s to 2.0 s
#include "report/table/query_write.h"

#include "base/mem.h"
#include "report/table/lines.h"

#include <inttypes.h>
#include <string.h>

// ---- for people ----

// Duration and events are those of the whole trace. What narrows the figures below is said after
// them: the window, and that there are filters.
void query_write_headline(const struct query_context *asked, struct paper *paper)
{
	const struct trace_info *info = reader_info(asked->reader);
	uint32_t processes = reader_processes_count(asked->reader);

	paper_foreign(paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      paper->width);
	sink_text(paper->sink, "\n");
	paper_format(paper, PAPER_DIM, "%s, %s events", STR_DURATION(asked->duration_ns),
		     STR_COUNT(asked->events));
	if (processes == 1)
		paper_format(paper, PAPER_DIM, ", process %" PRIu32,
			     reader_process(asked->reader, 0)->pid);
	else
		paper_format(paper, PAPER_DIM, ", %" PRIu32 " processes", processes);
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < asked->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", asked->warnings[i]);
	if (asked->from_given || asked->to_given)
		paper_format(paper, PAPER_PLAIN, "window: from %s to %s\n",
			     STR_DURATION(asked->from_ns), STR_DURATION(asked->to_ns));
	if (query_narrows(&asked->selection.query))
		paper_paragraph(paper, PAPER_PLAIN, "filtered",
				"the figures below are those of the selected allocations only");
	sink_text(paper->sink, "\n");
}

void query_write_symbol_notes(const struct query_context *asked, struct paper *paper)
{
	const char *const *lines;
	size_t count = symbols_notes(asked->symbols, &lines);

	for (size_t i = 0; i < count; i++)
		paper_paragraph(paper, PAPER_WARNING, "symbols", lines[i]);
}

// The caller ends it by query_write_last or stack_text_fini.
struct stack_text query_write_stacks(const struct query_context *asked, struct paper *paper,
				     unsigned indent, unsigned callers_max, bool all_frames)
{
	ASSERT(asked->names && asked->reader);
	return (struct stack_text){
		.paper = paper,
		.names = asked->names,
		.reader = asked->reader,
		.indent = indent,
		.callers_max = callers_max,
		.all_frames = all_frames,
		.several = reader_processes_count(asked->reader) > 1,
	};
}

void query_write_last(const struct query_context *asked, struct stack_text *stacks)
{
	ASSERT(stacks->paper);
	query_write_symbol_notes(asked, stacks->paper);
	stack_text_hint(stacks);
	stack_text_fini(stacks);
}

// ---- for programs ----

void query_write_warnings(const struct query_context *asked, struct json *json)
{
	json_kv_array(json, "warnings");
	for (size_t i = 0; i < asked->warnings_count; i++)
		json_string(json, asked->warnings[i]);
	json_array_end(json);
}

// Where the trace was open before the question (the viewer), files were looked at for other
// questions: what is known of them must not hang on which these were.
static void write_symbol_notes(const struct query_context *asked, struct json *json,
			       const char *key)
{
	const char *const *lines;
	size_t count = asked->opened == &asked->own ? symbols_notes(asked->symbols, &lines) : 0;

	json_kv_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_string(json, lines[i]);
	json_array_end(json);
}

void query_write_end(const struct query_context *asked, struct json *json)
{
	write_symbol_notes(asked, json, "symbol_notes");
	json_end(json);
}

static bool is_in(const char *const *lines, size_t count, const char *line)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(lines[i], line) == 0)
			return true;
	return false;
}

size_t query_write_notes(const struct query_context *const *asked, size_t count,
			 const char ***notes)
{
	size_t notes_count = 0, capacity = 0;

	ASSERT(asked && notes);
	*notes = NULL;
	for (size_t i = 0; i < count; i++) {
		const char *const *lines;
		size_t lines_count = symbols_notes(asked[i]->symbols, &lines);

		for (size_t k = 0; k < lines_count; k++)
			if (!is_in(*notes, notes_count, lines[k]))
				*MEM_ADD(*notes, notes_count, capacity) = lines[k];
	}
	return notes_count;
}

void query_write_end_of_several(const struct query_context *const *asked, size_t count,
				struct json *json)
{
	const char **notes;
	size_t notes_count = query_write_notes(asked, count, &notes);

	json_kv_array(json, "symbol_notes");
	for (size_t i = 0; i < notes_count; i++)
		json_string(json, notes[i]);
	json_array_end(json);
	json_end(json);
	mem_free(notes);
}

void query_write_end_of_two(const struct query_context *before, const struct query_context *after,
			    struct json *json)
{
	json_kv_object(json, "symbol_notes");
	write_symbol_notes(before, json, "before");
	write_symbol_notes(after, json, "after");
	json_object_end(json);
	json_end(json);
}

void query_write_trace_as(const struct query_context *asked, struct json *json, const char *key)
{
	const struct trace_info *info = reader_info(asked->reader);

	json_kv_object(json, key);
	json_kv_bool(json, "complete", reader_complete(asked->reader));
	json_kv_u64(json, "events", asked->events);
	json_kv_u64(json, "duration_ns", asked->duration_ns);
	json_kv_text(json, "command", info->command);
	query_write_warnings(asked, json);
	json_kv_u64(json, "from_ns", asked->from_ns);
	json_kv_u64(json, "to_ns", asked->to_ns);
	json_object_end(json);
}

// The window is within "trace" too: of a comparison each of the two traces has its own there.
void query_write_trace(const struct query_context *asked, struct json *json)
{
	query_write_trace_as(asked, json, "trace");
	json_kv_u64(json, "from_ns", asked->from_ns);
	json_kv_u64(json, "to_ns", asked->to_ns);
	json_kv_string(json, "layer", asked->layers == WINDOW_VM ? "vm" : "heap");
}

void query_write_stack(const struct query_context *asked, struct json *json, stack_id id)
{
	struct names_stack stack = names_stack(asked->names, id);

	lines_json_site(json, &stack);
}

void query_write_place(const struct query_context *asked, struct json *json, process_id id,
		       stack_id stack)
{
	const struct trace_process *process = reader_process(asked->reader, id);

	json_kv_u64_if(json, "process", process, process ? process->pid : 0);
	json_kv_u64(json, "process_id", id);
	json_kv_text(json, "exe", process ? process->exe : NULL);
	query_write_stack(asked, json, stack);
}
