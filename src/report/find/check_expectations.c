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
	const struct query *query;
	struct check_row *row;
	size_t capacity;
	struct map places; // process and stack -> site
	uint32_t *depths;  // of such phases, by thread
	size_t threads, depths_capacity;
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

// An end without its begin, of a phase that began before the recording, changes nothing. That a
// phase was reached makes the figure known, even if it is 0.
static void take_note(struct expectations *all, const struct trace_note *note)
{
	uint32_t *depth;

	if (note->kind != TRACE_NOTE_MARK || note->thread == TRACE_NONE ||
	    strncmp(note->text, phase, sizeof phase - 1) != 0)
		return;
	depth = depth_of(all, note->thread);
	all->row->known = true;
	if (str_ends_with(note->text, begin))
		++*depth;
	else if (str_ends_with(note->text, end) && *depth > 0)
		--*depth;
}

// A call that begins a block: malloc, realloc and related functions, but no block that was found by
// attaching or that a fork has copied.
static bool allocates(uint8_t kind)
{
	return effect_of(kind) & EFFECT_BEGINS && effect_of(kind) & EFFECT_CALL;
}

// Counted where its own thread is in such a phase, whatever others are in, and by its stack, so
// that the row says who allocates there.
static void take_event(struct expectations *all, const struct reader *reader,
		       const struct trace_event *event)
{
	const struct query *query = all->query;
	process_id process = reader_thread(reader, event->thread)->process;
	struct check_site *site;
	uint64_t *place;
	bool added;

	if (!allocates(event->kind) || event->thread >= all->threads ||
	    !all->depths[event->thread] || !query_has_process(query, process) ||
	    !query_has_thread(query, event->thread) || !query_has_size(query, event->size) ||
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
// was nothing to look at.
void check_read_expectations(const struct query_context *asked, struct check_row *row)
{
	struct expectations all = { .query = &asked->selection.query, .row = row };
	struct reader_pass pass;

	if (!expects(asked->reader))
		return;
	pass = reader_pass_begin(asked->reader, NULL);
	while (reader_pass_next(&pass) != READER_END) {
		if (pass.item == READER_NOTE)
			take_note(&all, &pass.note);
		else
			take_event(&all, asked->reader, &pass.event);
	}
	map_fini(&all.places);
	mem_free(all.depths);
}
