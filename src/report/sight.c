#include "report/sight.h"

#include "base/mem.h"
#include "report/cautions.h"
#include "report/lines.h"

#include <inttypes.h>
#include <string.h>

static bool is_exit(const char *at)
{
	return !at || strcmp(at, "exit") == 0;
}

bool sight_check(const char *at, struct err *err)
{
	return is_exit(at) || moment_check(at, err);
}

void sight_warn(struct sight *sight, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	sight->warnings = mem_grow(sight->warnings, &sight->warnings_capacity,
				   sight->warnings_count + 1, sizeof *sight->warnings);
	sight->warnings[sight->warnings_count++] = str_take(&text);
}

// A moment_peak: when the selected processes had most memory committed.
static bool peak_of_mappings(void *context, struct moment_edge *edge, struct err *err)
{
	struct sight *sight = context;
	struct space *space = space_new(NULL);
	const struct space_totals *totals = space_all(space);
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	bool found;

	reader_rewind(sight->reader);
	while ((item = reader_next(sight->reader, &event, &note)) != READER_END) {
		const struct trace_thread *thread;

		if (item == READER_EVENT && !trace_kind_is_vm(event.kind))
			continue;
		space_learn(space, sight->reader);
		thread = item == READER_EVENT ? reader_thread(sight->reader, event.thread) : NULL;
		if (item == READER_NOTE)
			space_add_note(space, &note);
		else if (thread && query_has_process(&sight->selection.query, thread->process))
			space_add_event(space, &event);
	}
	reader_rewind(sight->reader);
	*edge = (struct moment_edge){
		.time_ns = totals->committed_peak_ns,
		.number = totals->committed_peak_number + 1,
		.exact = true,
	};
	found = totals->committed_peak_bytes > 0;
	space_free(space);
	return found ||
	       err_set(err, ERR_USAGE, "nothing is mapped in these processes: there is no peak");
}

static bool prepare(struct sight *sight, struct err *err)
{
	const struct sight_options *options = &sight->options;

	if (!selection_init(&sight->selection, options->words, sight->reader, sight->names, err))
		return false;
	if (!selection_read(&sight->selection, options->progress, err))
		return false;
	sight->at_exit = is_exit(options->at);
	return sight->at_exit ||
	       moment_find(options->at, sight->reader,
			   options->of_mappings ? peak_of_mappings : NULL, sight, &sight->edge,
			   err) ||
	       err_wrap(err, "--at");
}

bool sight_open(struct sight *sight, const struct sight_options *options, struct err *err)
{
	struct opened *opened = options->opened ? options->opened : &sight->own;

	*sight = (struct sight){ .options = *options };
	// A damaged tail is told once the events have been read.
	if (!options->opened && !opened_open(opened, options->path, &options->symbols, err))
		return false;
	sight->reader = opened->reader;
	sight->symbols = opened->symbols;
	sight->names = opened->names;
	if (prepare(sight, err))
		return true;
	sight_close(sight);
	return false;
}

void sight_close(struct sight *sight)
{
	for (size_t i = 0; i < sight->warnings_count; i++)
		mem_free(sight->warnings[i]);
	mem_free(sight->warnings);
	present_free(sight->present);
	if (sight->selection.reader)
		selection_fini(&sight->selection);
	opened_close(&sight->own);
	*sight = (struct sight){ 0 };
}

// Once each, however often the trace is read.
static void tell_caution(void *context, const char *text)
{
	struct sight *sight = context;

	for (size_t i = 0; i < sight->warnings_count; i++)
		if (strcmp(sight->warnings[i], text) == 0)
			return;
	sight_warn(sight, "%s", text);
}

void sight_read(struct sight *sight, const struct present_options *more)
{
	struct present_options options = { .inherits = TRACE_NONE };
	struct progress progress;

	if (more)
		options = *more;
	options.query = &sight->selection.query;
	options.at_exit = sight->at_exit;
	options.edge = sight->edge;
	options.progress = &progress;
	reader_rewind(sight->reader);
	progress_begin(&progress, sight->options.progress, "reading", reader_bytes(sight->reader));
	sight->present = present_read(sight->reader, &options);
	progress_end(&progress);
	sight->complete = reader_complete(sight->reader);
	cautions_tell(sight->reader, tell_caution, sight);
}

static void warn_of_count(struct sight *sight, uint64_t count, const char *what)
{
	if (count)
		sight_warn(sight, "%" PRIu64 " %s", count, what);
}

void sight_warn_of_space(struct sight *sight)
{
	const struct space_totals *totals = space_all(present_space(sight->present));

	warn_of_count(sight, totals->absurd,
		      "calls have ranges that no address space can hold; they were not believed");
	warn_of_count(sight, totals->overlapping,
		      "mappings lie where others had not ended: their ends were not seen");
	warn_of_count(sight, totals->unknown,
		      "calls moved or protected memory that was not known to be mapped");
}

void sight_warn_of_samples(struct sight *sight)
{
	if (reader_info(sight->reader)->sample_bytes)
		sight_warn(sight, "the memory of blocks that are no samples counts as free");
}

static bool was_left(const struct sight *sight, process_id id)
{
	return reader_process(sight->reader, id)->exit == TRACE_EXIT_EXEC;
}

bool sight_passes_over(const struct sight *sight, process_id process)
{
	if (!sight->at_exit || !was_left(sight, process))
		return false;
	for (process_id id = 0; id < reader_processes_count(sight->reader); id++)
		if (query_has_process(&sight->selection.query, id) && !was_left(sight, id))
			return true;
	return false;
}

bool sight_choose(struct sight *sight, process_id *process, struct err *err)
{
	const struct space *space = present_space(sight->present);
	uint64_t most = 0;
	uint32_t mapped = 0;

	for (process_id id = 0; id < reader_processes_count(sight->reader); id++) {
		uint64_t bytes = ranges_bytes(space_ranges(space, id));

		if (!bytes || !query_has_process(&sight->selection.query, id) ||
		    sight_passes_over(sight, id))
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
		sight_warn(sight,
			   "%" PRIu32 " processes are there; this is the one with the most "
			   "memory mapped (choose with --process)",
			   mapped);
	return true;
}

uint64_t sight_time(const struct sight *sight)
{
	return sight->at_exit ? moment_duration(sight->reader) : sight->edge.time_ns;
}

void sight_describe(const struct sight *sight, struct str *text)
{
	char time[24];

	if (sight->at_exit) {
		str_add(text, "at exit");
		return;
	}
	str_duration(sight->edge.time_ns, time);
	if (sight->edge.mark)
		str_format(text, "at the mark '%s', %s", sight->edge.mark->name, time);
	else
		str_format(text, "at %s", time);
}

void sight_write_headline(const struct sight *sight, struct paper *paper, process_id process)
{
	const struct trace_info *info = reader_info(sight->reader);
	const struct trace_process *one = reader_process(sight->reader, process);
	struct str line = { 0 };

	paper_foreign(paper, PAPER_BOLD, *info->command ? info->command : "(no command)",
		      paper->width);
	sink_text(paper->sink, "\n");
	sight_describe(sight, &line);
	if (one)
		str_format(&line, ", process %" PRIu32 " (%s)", one->pid, names_file(one->exe));
	paper_foreign(paper, PAPER_DIM, str_get(&line), paper->width);
	sink_text(paper->sink, "\n");
	for (size_t i = 0; i < sight->warnings_count; i++)
		paper_paragraph(paper, PAPER_WARNING, "warning", sight->warnings[i]);
	sink_text(paper->sink, "\n");
	str_fini(&line);
}

void sight_write_stack(const struct sight *sight, struct json *json, stack_id stack)
{
	struct names_stack named = names_stack(sight->names, stack);
	bool pretty = json->pretty;

	json_kv_u64(json, "user_frame", named.count ? named.user : 0);
	json_key(json, "stack");
	lines_json(json, &named);
	json->pretty = pretty;
}

const struct symbol *sight_function(const struct sight *sight, stack_id stack)
{
	struct names_stack named = names_stack(sight->names, stack);

	return named.count ? named.lines[named.user].symbol : NULL;
}
