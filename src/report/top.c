// The trace is read while it is written, so each look takes what has come since the last one and
// stops at the time that is shown. An event after that time is kept for the next look: of events
// at 4.9 s, 5.0 s and 5.1 s a look until 5 s counts two, and the third is pending. What a site did
// since the last look is the difference to its figures then, which are kept beside it.
#include "report/top.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cautions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_SECOND_NS = 1000000000, TOP_PROCESSES = 8, TOP_INDENT = 43, TOP_NAME = 60 };

// The reader follows the file, so that READER_END means no more yet. The heap is never finished:
// only what it has so far is asked.
bool top_open(struct top *top, const char *path, const struct symbols_options *symbols,
	      struct err *err)
{
	*top = (struct top){ 0 };
	if (!opened_open(&top->opened, path, symbols, err))
		return false;
	top->heap = heap_new(NULL);
	heap_sampled(top->heap, reader_info(top->opened.reader)->sample_bytes,
		     reader_info(top->opened.reader)->budget ? top->opened.reader : NULL);
	heap_trimmed(top->heap, reader_info(top->opened.reader)->trimmed);
	reader_follow(top->opened.reader, true);
	return true;
}

void top_close(struct top *top)
{
	heap_free(top->heap);
	opened_close(&top->opened);
	MEM_FREE(top->before, top->since, top->rows);
	*top = (struct top){ 0 };
}

// ---- Reading ------------------------------------------------------------------------------------

// The recording ended, and not the process: what lived there lives.
static bool top_outlives(const struct top *top, const struct trace_note *note)
{
	return note->kind == TRACE_NOTE_PROCESS_END &&
	       reader_process(top->opened.reader, note->process)->exit == TRACE_EXIT_UNKNOWN;
}

// It ended, and no other is left: what lived then is shown until another one begins.
static bool top_ends_all(const struct top *top, const struct trace_note *note)
{
	const struct reader *reader = top->opened.reader;

	if (note->kind != TRACE_NOTE_PROCESS_END)
		return false;
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		if (id != note->process && reader_process(reader, id)->ended_ns > note->time_ns)
			return false;
	return true;
}

static void top_take_note(struct top *top)
{
	bool outlives = top_outlives(top, &top->note);

	if (top->at_exit && top->note.kind == TRACE_NOTE_PROCESS_START) {
		heap_add_note(top->heap, &top->last_end);
		top->at_exit = false;
	}
	if (!outlives && !top->at_exit && top_ends_all(top, &top->note)) {
		top->at_exit = true;
		top->last_end = top->note;
	} else if (!outlives) {
		heap_add_note(top->heap, &top->note);
	}
}

// Take what is there, up to `until_ns`. What is read of the next part is pending; the reader is not
// asked before that is taken, so the text of a note is there still.
static void top_take(struct top *top, uint64_t until_ns)
{
	struct reader *reader = top->opened.reader;
	for (;;) {
		uint64_t time_ns;

		if (top->pending == READER_END)
			top->pending = reader_next(reader, &top->event, &top->note);
		if (top->pending == READER_END)
			return;
		time_ns = top->pending == READER_NOTE ? top->note.time_ns : top->event.time_ns;
		if (time_ns > until_ns)
			return;
		heap_learn(top->heap, reader);
		if (top->pending == READER_EVENT)
			heap_add_event(top->heap, &top->event);
		else
			top_take_note(top);
		top->at_ns = time_ns;
		top->pending = READER_END;
	}
}

// Of a sampled recording each sum is an estimate of the whole (heap_so_far).
static struct top_figures top_sum(const struct top *top)
{
	struct top_figures sum = { .live = heap_level(top->heap) };

	for (process_id id = 0; id < reader_processes_count(top->opened.reader); id++) {
		const struct heap_counts *counts = heap_process_so_far(top->heap, id);

		if (!counts)
			continue;
		sum.allocated.count += counts->allocated.count;
		sum.allocated.bytes += counts->allocated.bytes;
		sum.frees += counts->frees;
	}
	sum.allocated = heap_so_far(top->heap, sum.allocated);
	sum.frees = heap_so_far(top->heap, (struct heap_amount){ .count = sum.frees }).count;
	return sum;
}

// The figures of all sites, to compare with later. Sites keep their numbers while the trace grows,
// so a list by number is enough.
static size_t top_keep(const struct top *top, struct top_figures **list)
{
	size_t count;
	const struct heap_site *sites = heap_sites_so_far(top->heap, &count);

	*list = mem_resize(*list, count + 1, sizeof(**list));
	for (size_t i = 0; i < count; i++)
		(*list)[i] = (struct top_figures){
			.live = heap_so_far(top->heap, sites[i].live),
			.allocated = heap_so_far(top->heap, sites[i].allocated),
		};
	return count;
}

// What happened up to here is what rates are the difference to.
static void top_begin_part(struct top *top)
{
	top->from_ns = top->at_ns;
	top->all_before = top_sum(top);
	top->before_count = top_keep(top, &top->before);
}

// The first time all up to the last second is taken at once, so that the first rates are of that
// second. Growth counts from there too, until a mark is set: top_mark takes the figures, and that
// `marked` is false says that no user asked for it.
void top_read(struct top *top)
{
	struct reader *reader = top->opened.reader;
	bool first = !top->before;

	if (first) {
		uint64_t last_ns = reader_stats(reader)->last_ns;

		top_take(top, last_ns > TOP_SECOND_NS ? last_ns - TOP_SECOND_NS : 0);
		top->at_ns = last_ns > TOP_SECOND_NS ? last_ns - TOP_SECOND_NS : 0;
	} else {
		reader_grown(reader);
	}
	top_begin_part(top);
	if (first) {
		top_mark(top);
		top->marked = false;
	}
	top_take(top, UINT64_MAX);
	top->all = top_sum(top);
	heap_peak_so_far(top->heap, &top->peak_bytes, &top->peak_ns);
}

void top_mark(struct top *top)
{
	top->marked = true;
	top->mark_ns = top->at_ns;
	top->all_marked = top_sum(top);
	top->since_count = top_keep(top, &top->since);
}

// ---- Rows ---------------------------------------------------------------------------------------

static double top_per_second(const struct top *top, uint64_t count)
{
	uint64_t ns = top->at_ns - top->from_ns;

	return ns == 0 ? 0.0 : (double)count * TOP_SECOND_NS / (double)ns;
}

// Of equals the one that holds more comes first, then the older site.
static int top_compare(const void *a, const void *b, void *context)
{
	const struct top_row *x = a, *y = b;
	const struct top *top = context;

	if (top->order == TOP_BY_RATE && x->allocations_s != y->allocations_s)
		return x->allocations_s < y->allocations_s ? 1 : -1;
	if (top->order == TOP_BY_GROWTH && x->grown != y->grown)
		return x->grown < y->grown ? 1 : -1;
	if (x->live.bytes != y->live.bytes)
		return x->live.bytes < y->live.bytes ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

// Any function of the stack that has the text in its name.
static bool top_passes(struct top *top, stack_id stack)
{
	struct names_stack names;

	if (!top->filter || !*top->filter)
		return true;
	names = names_stack(top->opened.names, stack);
	for (size_t i = 0; i < names.count; i++)
		if (names.lines[i].symbol->function &&
		    strstr(names.lines[i].symbol->function, top->filter))
			return true;
	return false;
}

// A site that is new since the last look had nothing then. One that holds nothing, did nothing and
// is as it was is left out. What stays selected is the place in the list: after the next look there
// may be another site in it.
void top_list(struct top *top)
{
	size_t count;
	const struct heap_site *sites = heap_sites_so_far(top->heap, &count);

	top->rows_count = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t before = i < top->before_count ? top->before[i].allocated.count : 0;
		uint64_t then = i < top->since_count ? top->since[i].live.bytes : 0;
		struct heap_amount live = heap_so_far(top->heap, sites[i].live);
		uint64_t allocated = heap_so_far(top->heap, sites[i].allocated).count;
		struct top_row row = {
			.site = i,
			.process = sites[i].process,
			.stack = sites[i].stack,
			.live = live,
			.grown = (int64_t)(live.bytes - then),
			.allocations_s = top_per_second(top, allocated - before),
		};

		if ((!row.live.count && !row.grown && row.allocations_s == 0.0) ||
		    !top_passes(top, row.stack))
			continue;
		*MEM_ADD(top->rows, top->rows_count, top->rows_capacity) = row;
	}
	if (top->rows_count)
		mem_sort(top->rows, top->rows_count, sizeof(*top->rows), top_compare, top);
	if (top->selected >= top->rows_count)
		top->selected = top->rows_count ? top->rows_count - 1 : 0;
}

// ---- Text ---------------------------------------------------------------------------------------

static const char *top_change(int64_t bytes, char text[24])
{
	snprintf(text, 24, "%s%s",
		 bytes < 0   ? "-"
		 : bytes > 0 ? "+"
			     : "",
		 STR_BYTES((uint64_t)(bytes < 0 ? -bytes : bytes)));
	return text;
}

// The second line is of all sites, whatever the filter leaves in the list, and so are the rates.
static void top_write_head(struct top *top, struct paper *paper)
{
	const struct reader *reader = top->opened.reader;
	char b[24];
	struct err err;

	paper_format(paper, PAPER_BOLD, "%s", str_last_part(top->opened.path));
	paper_format(paper, PAPER_DIM, "  %s, at %s\n",
		     reader_growing(reader)    ? "being written"
		     : reader_ok(reader, &err) ? "whole"
					       : "not whole",
		     STR_DURATION(top->at_ns));
	paper_format(paper, PAPER_BOLD, "heap  %s", STR_BYTES(top->all.live.bytes));
	paper_format(paper, PAPER_PLAIN, " in %s blocks%s, at most %s",
		     STR_COUNT(top->all.live.count), top->at_exit ? " at exit" : "",
		     str_bytes(top->peak_bytes, b));
	paper_format(paper, PAPER_PLAIN, " at %s; %s since %s", STR_DURATION(top->peak_ns),
		     top_change((int64_t)(top->all.live.bytes - top->all_marked.live.bytes), b),
		     STR_DURATION(top->mark_ns));
	paper_format(paper, PAPER_PLAIN, "%s\n", top->marked ? " (mark)" : "");
	paper_format(
		paper, PAPER_PLAIN, "rate  %.0f allocations/s, %s/s, %.0f frees/s",
		top_per_second(top, top->all.allocated.count - top->all_before.allocated.count),
		STR_BYTES((uint64_t)top_per_second(top, top->all.allocated.bytes -
								top->all_before.allocated.bytes)),
		top_per_second(top, top->all.frees - top->all_before.frees));
	paper_format(paper, PAPER_DIM, " over %s\n", str_duration(top->at_ns - top->from_ns, b));
}

// Of one process this would say what the head says. Processes that ended are left out here, and
// written in JSON; of those that run the first eight have a line.
static void top_write_processes(struct top *top, struct paper *paper)
{
	const struct reader *reader = top->opened.reader;
	uint32_t count = reader_processes_count(reader), shown = 0;
	struct heap_amount lives;
	struct str name = { 0 };

	if (count < 2)
		return;
	sink_text(paper->sink, "\n");
	paper_format(paper, PAPER_DIM, "%10s %12s %11s  %s\n", "LIVE", "BLOCKS", "PEAK", "PROCESS");
	for (process_id id = 0; id < count; id++) {
		const struct heap_counts *counts = heap_process_so_far(top->heap, id);
		const struct trace_process *process = reader_process(reader, id);

		if (!counts || process->ended_ns <= top->at_ns || shown++ >= TOP_PROCESSES)
			continue;
		lives = heap_so_far(top->heap, counts->live);
		str_clear(&name);
		names_add_process(process, &name);
		paper_format(paper, PAPER_PLAIN, "%10s %12s %11s  %" PRIu32 " ",
			     STR_BYTES(lives.bytes), STR_COUNT(lives.count),
			     STR_BYTES(heap_so_far(top->heap, counts->peak).bytes), process->pid);
		paper_foreign(paper, PAPER_PLAIN, str_get(&name), TOP_NAME);
		sink_text(paper->sink, "\n");
	}
	str_fini(&name);
	if (shown > TOP_PROCESSES)
		paper_format(paper, PAPER_DIM, "and %" PRIu32 " more\n", shown - TOP_PROCESSES);
}

// The selected row is as others until it is opened: then it is bold, with its callers below.
static void top_write_row(struct top *top, struct lines *lines, size_t at)
{
	const struct top_row *row = &top->rows[at];
	bool selected = top->open && at == top->selected;
	char grown[24];
	struct names_stack stack = names_stack(top->opened.names, row->stack);

	ASSERT(at < top->rows_count);
	paper_format(lines->paper, selected ? PAPER_BOLD : PAPER_PLAIN, "%10s %10s %10s %10.0f  ",
		     STR_BYTES(row->live.bytes), STR_COUNT(row->live.count),
		     top_change(row->grown, grown), row->allocations_s);
	if (stack.count)
		lines_write(lines, stack.lines[stack.user].symbol,
			    selected ? PAPER_BOLD : PAPER_PLAIN, "");
	else
		sink_text(lines->paper->sink, "(no stack)\n");
	if (selected)
		lines_write_callers(lines, &stack, stack.user);
}

static void top_warn(void *context, const char *text)
{
	paper_paragraph(context, PAPER_WARNING, "warning", text);
}

static void top_tell_cautions(const struct top *top, void (*tell)(void *context, const char *text),
			      void *context)
{
	ASSERT(tell);
	if (reader_is_estimated(top->opened.reader))
		tell(context, "the recording is sampled: all figures are estimates of the whole");
	cautions_tell_origin(top->opened.reader, tell, context);
}

// The selected row is always shown: the list is moved up as far as that needs.
void top_write_text(struct top *top, struct paper *paper, size_t rows_max)
{
	static const char *const orders[TOP_ORDERS] = { "LIVE", "GROWN", "ALLOC/S" };
	struct lines lines = { .paper = paper, .indent = TOP_INDENT };
	size_t shown = rows_max && rows_max < top->rows_count ? rows_max : top->rows_count;
	size_t first = top->selected >= shown && shown ? top->selected - shown + 1 : 0;

	ASSERT(first + shown <= top->rows_count); // top_list has put `selected` right
	top_write_head(top, paper);
	top_tell_cautions(top, top_warn, paper);
	top_write_processes(top, paper);
	sink_text(paper->sink, "\n");
	paper_format(paper, PAPER_DIM, "%10s %10s %10s %10s  SITE, by %s\n", "LIVE", "BLOCKS",
		     "GROWN", "ALLOC/S", orders[top->order]);
	for (size_t i = first; i < first + shown; i++)
		top_write_row(top, &lines, i);
	if (shown < top->rows_count)
		paper_format(paper, PAPER_DIM, "and %zu more sites\n", top->rows_count - shown);
}

// ---- JSON ---------------------------------------------------------------------------------------

static void top_json_warning(void *context, const char *text)
{
	json_string(context, text);
}

// All processes, those that ended too.
static void top_json_processes(struct top *top, struct json *json)
{
	const struct reader *reader = top->opened.reader;

	json_kv_array(json, "processes");
	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct heap_counts *counts = heap_process_so_far(top->heap, id);
		const struct trace_process *process = reader_process(reader, id);

		if (!counts)
			continue;
		json_object_begin(json);
		json_kv_u64(json, "id", id);
		json_kv_u64(json, "pid", process->pid);
		json_kv_text(json, "exe", process->exe);
		json_kv_bool(json, "ended", process->ended_ns <= top->at_ns);
		lines_json_amount(json, "live", heap_so_far(top->heap, counts->live));
		json_kv_u64(json, "peak_bytes", heap_so_far(top->heap, counts->peak).bytes);
		json_object_end(json);
	}
	json_array_end(json);
}

static void top_json_row(struct top *top, struct json *json, const struct top_row *row)
{
	struct names_stack stack = names_stack(top->opened.names, row->stack);

	json_object_begin(json);
	json_kv_u64(json, "process", reader_process(top->opened.reader, row->process)->pid);
	json_kv_u64(json, "process_id", row->process);
	lines_json_amount(json, "live", row->live);
	json_kv_i64(json, "grown_bytes", row->grown);
	json_kv_double(json, "allocations_per_second", row->allocations_s);
	lines_json_site(json, &stack);
	json_object_end(json);
}

// As in text: `from_ns` to `at_ns` is what the rates are of, and the filter is of the rows alone.
void top_write_json(struct top *top, struct sink *sink, size_t rows_max)
{
	size_t shown = rows_max && rows_max < top->rows_count ? rows_max : top->rows_count;
	struct json json;

	json_begin(&json, sink, true, "tidemark-top-1");
	json_kv_bool(&json, "complete", reader_complete(top->opened.reader));
	json_kv_bool(&json, "growing", reader_growing(top->opened.reader));
	json_kv_array(&json, "warnings");
	top_tell_cautions(top, top_json_warning, &json);
	json_array_end(&json);
	json_kv_u64(&json, "at_ns", top->at_ns);
	json_kv_u64(&json, "from_ns", top->from_ns);
	lines_json_amount(&json, "live", top->all.live);
	json_kv_u64(&json, "peak_bytes", top->peak_bytes);
	json_kv_u64_if(&json, "peak_ns", top->peak_bytes > 0, top->peak_ns);
	json_kv_i64(&json, "grown_bytes",
		    (int64_t)(top->all.live.bytes - top->all_marked.live.bytes));
	json_kv_double(&json, "allocations_per_second",
		       top_per_second(top,
				      top->all.allocated.count - top->all_before.allocated.count));
	json_kv_double(&json, "allocated_bytes_per_second",
		       top_per_second(top,
				      top->all.allocated.bytes - top->all_before.allocated.bytes));
	json_kv_double(&json, "frees_per_second",
		       top_per_second(top, top->all.frees - top->all_before.frees));
	top_json_processes(top, &json);
	json_kv_array(&json, "rows");
	for (size_t i = 0; i < shown; i++)
		top_json_row(top, &json, &top->rows[i]);
	json_array_end(&json);
	json_kv_u64(&json, "rows_left_out", top->rows_count - shown);
	json_end(&json);
}
