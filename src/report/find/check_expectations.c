// Counts allocations where the program says that it makes none: TIDEMARK_EXPECT_NO_ALLOC of
// tidemark.h, which is a phase "no-alloc FILE:LINE" of one thread. Such phases nest.
//
// The marks and the events are read in one pass in the trace's order, so a depth by thread is all
// that has to be known: an allocation is unexpected while the depth of its thread is above 0. For
// example begin, begin, end, malloc, end: the malloc is at depth 1, so it counts.
#include "report/find/check.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <string.h>

static const char phase[] = "no-alloc ", begin[] = ".begin", end[] = ".end";

struct expectations {
	const struct selection *selection;
	struct check_row *row;
	size_t capacity;
	struct map places; // process and stack -> site
	uint32_t *depths;  // of such phases, by thread
	size_t threads, depths_capacity;
	uint64_t next; // number of the event that comes next
};

// Threads are numbered as they appear, so the list grows to the highest number seen. Valid until
// the next call.
static uint32_t *depth_of(struct expectations *all, thread_id thread)
{
	if (thread >= all->threads) {
		size_t had = all->threads;

		all->threads = (size_t)thread + 1;
		MEM_ROOM(all->depths, all->depths_capacity, all->threads);
		memset(all->depths + had, 0, (all->threads - had) * sizeof *all->depths);
	}
	return &all->depths[thread];
}

// Whether the thread is one of those that are asked about.
static bool has_thread(const struct expectations *all, thread_id thread)
{
	const struct query *query = &all->selection->query;

	return query_has_process(query, reader_thread(all->selection->reader, thread)->process) &&
	       query_has_thread(query, thread);
}

// Whether the window's beginning (0) or end (1) is not after a note.
static bool passed(const struct expectations *all, int edge, const struct trace_note *note)
{
	const struct moment_edge *window = all->selection->window;

	if (!all->selection->within)
		return edge == 0;
	return moment_passed(&window[edge], all->next, note->time_ns);
}

// An end without its begin, of a phase that began before the recording, changes nothing, nor does a
// phase after the window. That one was reached makes the figure known, even if it is 0.
static void take_note(struct expectations *all, const struct trace_note *note)
{
	uint32_t *depth;

	if (note->kind != TRACE_NOTE_MARK || note->thread == TRACE_NONE ||
	    strncmp(note->text, phase, sizeof phase - 1) != 0 || !has_thread(all, note->thread))
		return;
	depth = depth_of(all, note->thread);
	if (str_ends_with(note->text, begin) && !passed(all, 1, note)) {
		all->row->known |= passed(all, 0, note);
		++*depth;
	} else if (str_ends_with(note->text, end) && *depth > 0) {
		all->row->known |= passed(all, 0, note);
		--*depth;
	}
}

// A call that begins a block: malloc, realloc and related functions, but no block that was found by
// attaching or that a fork has copied.
static bool allocates(uint8_t kind)
{
	return effect_of(kind) & EFFECT_BEGINS && effect_of(kind) & EFFECT_CALL;
}

// Counted where its own thread is in such a phase, whatever others are in, and by its stack, so
// that the row says who allocates there.
static void take_event(struct expectations *all, const struct trace_event *event)
{
	const struct query *query = &all->selection->query;
	process_id process = reader_thread(all->selection->reader, event->thread)->process;
	struct check_site *site;
	uint64_t *place;
	bool added;

	all->next = event->number + 1;
	if (!allocates(event->kind) || event->thread >= all->threads ||
	    !all->depths[event->thread] || !has_thread(all, event->thread) ||
	    (query->event && !query->event(query->event_context, event)) ||
	    (query->stack && !query->stack(query->context, event->stack)))
		return;
	place = map_put(&all->places, (uint64_t)process << 32 | event->stack, &added);
	if (added) {
		*place = all->row->sites_count;
		*MEM_ADD(all->row->sites, all->row->sites_count, all->capacity) =
			(struct check_site){ .process = process, .stack = event->stack };
	}
	site = &all->row->sites[*place];
	site->value = ++site->count;
	all->row->value++;
}

// Marks are listed in the trace's directory: where none is such a phase the trace is not read
// again.
static bool expects(const struct reader *reader)
{
	size_t count;
	const struct trace_mark *marks = reader_marks(reader, &count);

	for (size_t i = 0; i < count; i++)
		if (strncmp(marks[i].name, phase, sizeof phase - 1) == 0)
			return true;
	return false;
}

// Without such a phase the row stays unknown, which is not 0: a check of it then says that there
// was nothing to look at. One that has no end lasts to the end of the trace.
void check_read_expectations(const struct query_context *asked, struct check_row *row)
{
	struct expectations all = { .selection = &asked->selection, .row = row };
	struct reader_pass pass;

	if (!expects(asked->reader))
		return;
	pass = reader_pass_begin(asked->reader, NULL);
	while (reader_pass_next(&pass) != READER_END) {
		if (pass.item == READER_NOTE)
			take_note(&all, &pass.note);
		else
			take_event(&all, &pass.event);
	}
	for (size_t i = 0; i < all.threads; i++)
		row->known |= all.depths[i] > 0;
	map_fini(&all.places);
	mem_free(all.depths);
}
