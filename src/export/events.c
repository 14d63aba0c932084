// A block is followed from its beginning to its end by lives.h; here is what of that lies in the
// window and passes the filters. For example, with --from 1s --to 2s: a block from 0.5 s to 1.5 s
// is given to `before` at 1 s and to `end` at 1.5 s; one from 1.2 s to 3 s to `begin` alone; with
// `whole_lives` both are given once, by `end`, as AOFI and AIFO.
//
// The trace is read twice: reallocs that fail after all are found first, so that no end has to be
// taken back when it has been written.
#include "export/events.h"

#include "base/map.h"
#include "base/mem.h"
#include "trace/reader_pass.h"

struct reading {
	const struct query_context *asked;
	const struct events_watcher *watcher;
	const struct moment_edge *from, *to; // NULL: without an edge
	struct lives *lives;
	struct map undone;
	bool filtered;
	bool began; // the window has
	uint64_t next_number;
	uint64_t matched; // beginnings and ends that the watcher was told of
};

// ---- the window ----

static bool is_after(const struct moment_edge *from, uint64_t number, uint64_t time_ns)
{
	return !from || moment_passed(from, number, time_ns);
}

static bool is_before(const struct moment_edge *to, uint64_t number, uint64_t time_ns)
{
	return !to || !moment_passed(to, number, time_ns);
}

static const struct moment_edge *edge_from(const struct query_context *asked)
{
	return asked->from_given ? &asked->selection.window[0] : NULL;
}

static const struct moment_edge *edge_to(const struct query_context *asked)
{
	return asked->to_given ? &asked->selection.window[1] : NULL;
}

// Whether a call ended it before the window's end. The end of a process frees nothing.
static bool is_freed(const struct query_context *asked, const struct lives_end *end)
{
	return end->cause < LIVES_EXIT && is_before(edge_to(asked), end->number, end->time_ns);
}

enum query_type events_class(const struct export_source *source, const struct lives_block *block,
			     const struct lives_end *end)
{
	const struct query_context *asked = source->asked;
	bool freed = is_freed(asked, end);

	if (is_after(edge_from(asked), block->number, block->time_ns))
		return freed ? QUERY_AIFI : QUERY_AIFO;
	return freed ? QUERY_AOFI : QUERY_AOFO;
}

// ---- lives ----

// Filters are answered by number, from what the selection has read; without filters all pass, also
// blocks that were not seen to begin.
static bool is_wanted(const struct reading *reading, const struct lives_block *block)
{
	process_id only = reading->watcher->process;

	if (only != TRACE_NONE && block->process != only)
		return false;
	return !reading->filtered ||
	       (block->origin == LIVES_BEGUN &&
		event_bitmap_begin(reading->asked->selection.event_bitmap, block->number));
}

static void begin(void *context, const struct lives_block *block)
{
	struct reading *reading = context;
	const struct events_watcher *watcher = reading->watcher;

	if (watcher->begin && is_wanted(reading, block) &&
	    is_after(reading->from, block->number, block->time_ns) &&
	    is_before(reading->to, block->number, block->time_ns)) {
		reading->matched++;
		watcher->begin(watcher->context, block);
	}
}

// With whole lives it counts if it began before the window's end and ended after its beginning.
// What its process ended lives to the process's end.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct reading *reading = context;
	const struct events_watcher *watcher = reading->watcher;
	// A life counts where it overlaps the window; an end by itself where it is in it.
	bool after = is_after(reading->from, end->number, end->time_ns);
	bool wanted = watcher->whole_lives
			      ? block->origin == LIVES_BEGUN &&
					is_before(reading->to, block->number, block->time_ns) &&
					(after || end->cause >= LIVES_EXIT)
			      : after && is_before(reading->to, end->number, end->time_ns);

	if (wanted && is_wanted(reading, block)) {
		reading->matched++;
		watcher->end(watcher->context, block, end);
	}
}

static void before(void *context, const struct lives_block *block)
{
	struct reading *reading = context;

	if (is_wanted(reading, block)) {
		reading->matched++;
		reading->watcher->before(reading->watcher->context, block);
	}
}

// ---- reading ----

// The window begins before the first item that lies in it.
static void enter(struct reading *reading, uint64_t number, uint64_t time_ns)
{
	if (reading->began || !is_after(reading->from, number, time_ns))
		return;
	reading->began = true;
	if (reading->from && reading->watcher->before)
		lives_each(reading->lives, before, reading);
}

// Notes have no number: they are before the event that comes next.
static void add_note(struct reading *reading, const struct trace_note *note)
{
	const struct events_watcher *watcher = reading->watcher;

	// A note takes the number of the event that follows: a mark at the window's edge is in the
	// window that begins with that event.
	enter(reading, reading->next_number, note->time_ns);
	if (watcher->note && is_after(reading->from, reading->next_number, note->time_ns) &&
	    is_before(reading->to, reading->next_number, note->time_ns))
		watcher->note(watcher->context, note);
	lives_add_note(reading->lives, note);
}

// A stack that a damaged trace does not have is none.
static void add_event(struct reading *reading, struct trace_event *event)
{
	reading->next_number = event->number + 1;
	if (event->stack >= reader_stacks_count(reading->asked->reader))
		event->stack = 0;
	enter(reading, event->number, event->time_ns);
	lives_add_event(reading->lives, event);
}

// A window that begins after the last event still begins.
static void read_items(struct reading *reading, struct progress *progress)
{
	struct reader *reader = reading->asked->reader;
	struct reader_pass pass = reader_pass_begin(reader, progress);

	while (reader_pass_next(&pass) != READER_END) {
		if (pass.item == READER_EVENT)
			add_event(reading, &pass.event);
		else
			add_note(reading, &pass.note);
	}
	// So blocks that live then are given to `before`, though no item came after the window's
	// beginning.
	enter(reading, reading->next_number, UINT64_MAX);
	if (reading->watcher->whole_lives)
		lives_finish(reading->lives, moment_duration(reader));
}

bool events_prepare(struct query_context *asked, struct err *err)
{
	if (asked->layers != WINDOW_HEAP)
		return err_set(err, ERR_USAGE,
			       "the format holds blocks of heaps: --layer vm cannot be in it");
	return !query_narrows(&asked->selection.query) || query_context_select_events(asked, err);
}

void events_read(const struct export_source *source, const struct events_watcher *watcher)
{
	struct query_context *asked = source->asked;
	struct reading reading = {
		.asked = asked,
		.watcher = watcher,
		.from = edge_from(asked),
		.to = edge_to(asked),
		.filtered = query_narrows(&asked->selection.query),
	};
	const struct lives_watcher lives = { .begin = begin, .end = end, .context = &reading };
	struct progress progress;

	ASSERT(watcher);
	progress_begin(&progress, asked->options.window.progress, "reading",
		       reader_bytes(asked->reader));
	lives_find_undone(asked->reader, &reading.undone, &progress);
	// `undone` has the reallocs of which the trace says later that they failed (lives.h).
	reading.lives = lives_new(asked->reader, &lives, &reading.undone);
	read_items(&reading, &progress);
	progress_end(&progress);
	query_context_matched(asked, reading.matched);
	lives_free(reading.lives);
	map_fini(&reading.undone);
}

// Whether it has blocks in the window is not asked: that would be known after reading all of it.
bool events_choose(const struct export_source *source, const char *what, process_id *process,
		   struct err *err)
{
	const struct query *query = &source->asked->selection.query;
	uint32_t count = 0;

	for (process_id id = 0; id < reader_processes_count(source->asked->reader); id++) {
		if (!query_has_process(query, id))
			continue;
		*process = id;
		count++;
	}
	if (count == 1)
		return true;
	if (count == 0)
		return err_set(err, ERR_USAGE, "there is no process in it");
	return err_set(err, ERR_USAGE,
		       "%s is of one process, and here are %u (choose one: --process)", what,
		       count);
}
