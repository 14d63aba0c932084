// What is asked of one moment, by the index where there is one, else by the trace.
//
// An index that exists is used, and none is built: a question about one moment needs the trace up
// to it once, which takes less than a build. For example, `map --at 2s` of a trace of 40 s
// without an index reads a twentieth of its events; with an index it reads those since the last
// place before the moment and what the index has as living then. What comes out is the same list
// (`present`), so nothing after it knows where it came from.
#include "report/ask/moment_view.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/window_source.h"
#include "report/ask/cautions.h"
#include "report/table/lines.h"

#include <inttypes.h>
#include <string.h>

bool moment_view_check(const char *at, struct err *err)
{
	return !at || strcmp(at, "exit") == 0 || moment_check(at, err);
}

// `what` is the word before the progress bar.
static struct present *read_trace(struct query_context *asked,
				  const struct present_options *options, const char *what)
{
	struct present_options more = *options;
	struct progress progress;
	struct present *present;

	more.progress = &progress;
	reader_rewind(asked->reader);
	progress_begin(&progress, asked->options.window.progress, what,
		       reader_bytes(asked->reader));
	present = present_read(asked->reader, &more);
	progress_end(&progress);
	return present;
}

// NULL: there is none, and none is built.
static struct window *index_of(struct query_context *asked)
{
	opened_existing_index(asked->opened, &asked->options.window);
	return asked->opened->window;
}

struct present *moment_view_find(struct query_context *asked, const struct present_options *options)
{
	struct window *window = index_of(asked);
	struct present *present = window ? window_source_moment(window, options) : NULL;

	return present ? present : read_trace(asked, options, "reading");
}

// An index has a list of these calls, and so needs no pass over the events between them.
void moment_view_calls(struct query_context *asked, const struct present_options *options,
		       const char *what)
{
	struct window *window = index_of(asked);

	if (!window || !window_source_calls(window, options))
		present_free(read_trace(asked, options, what));
}

void moment_view_plateau(struct query_context *asked, process_id process, uint64_t number,
			 struct plateau *plateau)
{
	struct window *window = index_of(asked);

	if (!window || !window_source_plateau(window, process, number, plateau))
		plateau_find(plateau, asked->reader, process, number);
}

bool moment_view_go(struct query_context *asked, uint64_t number)
{
	struct window *window = index_of(asked);

	if (window && window_source_go(window, number))
		return true;
	reader_rewind(asked->reader);
	return false;
}

// Whether the trace is complete is known once it was read as far as the moment, so it is asked
// after.
void moment_view_read(struct query_context *asked, const struct present_options *more)
{
	struct present_options options = { .inherits = TRACE_NONE };

	if (more)
		options = *more;
	options.query = &asked->selection.query;
	options.at_exit = asked->at_exit;
	options.edge = asked->edge;
	asked->present = moment_view_find(asked, &options);
	asked->complete = reader_complete(asked->reader);
	query_context_caution(asked, true);
}

// For example "3 calls moved or protected memory that was not known to be mapped".
static void warn_of_count(struct query_context *asked, uint64_t count, const char *what)
{
	if (count)
		query_context_warn(asked, "%s %s", STR_COUNT(count), what);
}

static void warn_of_calls(struct query_context *asked, const struct space_totals *totals)
{
	struct str text = { 0 };

	cautions_add_unlisted(asked->reader, totals, &text);
	if (text.length)
		query_context_warn(asked, "%s", str_get(&text));
	str_fini(&text);
}

// What calls say of the address space is compared with snapshots; where there is none, nothing is
// known.
void moment_view_warn_of_calls(struct query_context *asked)
{
	const struct present_options options = { .query = &asked->selection.query,
						 .inherits = TRACE_NONE,
						 .at_exit = true,
						 .undated = true,
						 .spaces_only = true };
	struct present *present;

	if (reader_snapshots_count(asked->reader) == 0)
		return;
	present = moment_view_find(asked, &options);
	warn_of_calls(asked, space_all(present_space(present)));
	present_free(present);
}

void moment_view_warn_of_space(struct query_context *asked)
{
	const struct space_totals *totals = space_all(present_space(asked->present));

	warn_of_calls(asked, totals);
	warn_of_count(asked, totals->absurd,
		      "calls have ranges that no address space can hold; they were not believed");
	warn_of_count(asked, totals->overlapping,
		      "mappings are where others had not ended: their ends were not seen");
	warn_of_count(asked, totals->unknown,
		      "calls moved or protected memory that was not known to be mapped");
}

void moment_view_warn_of_samples(struct query_context *asked)
{
	if (reader_is_estimated(asked->reader))
		query_context_warn(asked,
				   "the memory of blocks that are not samples counts as free");
}

// Its process went on as another program.
static bool was_left(const struct query_context *asked, process_id id)
{
	return reader_process(asked->reader, id)->exit == TRACE_EXIT_EXEC;
}

bool moment_view_passes_over(const struct query_context *asked, process_id process)
{
	ASSERT(process < reader_processes_count(asked->reader));
	if (!asked->at_exit || !was_left(asked, process))
		return false;
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++)
		if (query_has_process(&asked->selection.query, id) && !was_left(asked, id))
			return true;
	return false;
}

// A question about one process that names none is about the one that has most mapped; the answer
// says which of how many it is.
bool moment_view_choose(struct query_context *asked, process_id *process, struct err *err)
{
	const struct space *space = present_space(asked->present);
	uint64_t most = 0;
	uint32_t mapped = 0;

	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		uint64_t bytes = ranges_bytes(space_ranges(space, id));

		if (!bytes || !query_has_process(&asked->selection.query, id) ||
		    moment_view_passes_over(asked, id))
			continue;
		mapped++;
		if (bytes > most) {
			most = bytes;
			*process = id;
		}
	}
	if (!mapped)
		return err_set(err, ERR_USAGE,
			       "no process of the trace has any mapping at that moment; virtual "
			       "memory may not have been recorded");
	if (mapped > 1)
		query_context_warn(asked,
				   "%" PRIu32 " processes are there; this is the one with the most "
				   "memory mapped (choose with --process)",
				   mapped);
	return true;
}

uint64_t moment_view_time(const struct query_context *asked)
{
	return asked->at_exit ? moment_duration(asked->reader) : asked->edge.time_ns;
}

void moment_view_describe(const struct query_context *asked, struct str *text)
{
	static const char *const last[] = { "at exit", "at the end", "at the cut" };
	char time[24];

	if (asked->at_exit) {
		str_add(text, last[query_context_last(asked)]);
		return;
	}
	str_duration(asked->edge.time_ns, time);
	if (asked->edge.mark)
		str_format(text, "at the mark '%s', %s", asked->edge.mark->name, time);
	else
		str_format(text, "at %s", time);
}

// The command and what was asked for come from the trace and the user, so they are written as
// foreign text: control characters do not reach the terminal.
void moment_view_write_headline(const struct query_context *asked, struct paper *paper,
				process_id process)
{
	const struct trace_info *info = reader_info(asked->reader);
	const struct trace_process *one = reader_process(asked->reader, process);
	struct str line = { 0 };

	paper_foreign(paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      paper->width);
	sink_text(paper->sink, "\n");
	moment_view_describe(asked, &line);
	if (one) {
		str_format(&line, ", process %" PRIu32 " (", one->pid);
		names_add_process(one, &line);
		str_add_char(&line, ')');
	}
	paper_foreign(paper, PAPER_DIM, str_get(&line), paper->width);
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < asked->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", asked->warnings[i]);
	sink_text(paper->sink, "\n");
	str_fini(&line);
}

void moment_view_write_stack(const struct query_context *asked, struct json *json, stack_id stack)
{
	struct names_stack named = names_stack(asked->names, stack);

	json_kv_u64(json, "user_frame", named.count ? named.user : 0);
	json_key(json, "stack");
	lines_json(json, &named);
}
