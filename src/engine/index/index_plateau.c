// In the example of plateau.c, up to event 6: the calls on virtual memory say that the last release
// is event 3, so the plateau begins at edge 4; the level there is 500. The highest level of the
// edges 4 to 6 is in the files of levels: 2,500 at edge 5. No step was read.
#include "engine/index/index_plateau.h"

#include "engine/index/index_ask.h"
#include "engine/index/index_moment.h"
#include "engine/replay/present.h"

struct looking {
	struct index *index;
	const struct reader *reader;
	process_id process;
	uint64_t released; // number of the last release and one more; 0: none
	uint64_t released_ns;
	bool alone; // no other has blocks
};

// Whether the level of the process is that of its blocks in malloc's heap alone. Levels of all are
// its own if it is alone.
static bool has_one_heap(struct looking *looking)
{
	const struct cells *cells = &looking->index->cells;

	looking->alone = true;
	for (uint32_t i = 1; i < cells->sites_count; i++) {
		const struct cells_site *site = cells_site(cells, i);

		if (site->orphans)
			continue;
		if (site->process != looking->process)
			looking->alone = false;
		else if (site->heap)
			return false;
	}
	return true;
}

// Called for each call on virtual memory up to the snapshot: the last one counts.
static void note_release(void *context, const struct space *, const struct trace_event *event)
{
	struct looking *looking = context;

	if (!trace_kind_is_vm(event->kind) || !plateau_begins_with(event) ||
	    reader_thread(looking->reader, event->thread)->process != looking->process)
		return;
	looking->released = event->number + 1;
	looking->released_ns = event->time_ns;
}

// Blocks of the process.
static uint32_t group_of(void *context, const struct window_cell *cell)
{
	const struct looking *looking = context;

	return !cell->orphans && cell->process == looking->process ? 0 : WINDOW_SKIP;
}

// Between the halves of a realloc that fails the index and the trace differ: to the trace the block
// is gone for so long.
static bool is_between_halves(const struct index *index, uint64_t edge)
{
	for (size_t i = 0; i < index->undone_count; i++)
		if (index->undone[i].from < edge && index->undone[i].to >= edge)
			return true;
	return false;
}

// From a number of an event, which is what callers have, to a number of a step.
static bool edge_of(struct looking *looking, uint64_t number, uint64_t *edge, struct err *err)
{
	const struct moment_edge moment = { .number = number, .exact = true };
	uint64_t events;

	return index_moment_edge(looking->index, &moment, edge, &events, err);
}

// How much of the process lives at an edge.
static bool level_at(struct looking *looking, uint64_t edge, uint64_t *bytes, struct err *err)
{
	const struct window_query query = {
		.from = edge, .to = edge, .group = group_of, .context = looking
	};
	struct window_result result = { 0 };
	bool ok = index_ask(looking->index, &query, &result, err);

	*bytes = result.total.type[WINDOW_AOFO].bytes;
	window_result_fini(&result);
	return ok;
}

// The edge after the step that made it most, as the place behind an event.
static bool set_edge(struct looking *looking, struct index_clock *clock, uint64_t edge,
		     struct plateau *plateau, struct err *err)
{
	struct index_block numbers = { 0 };
	uint64_t number = 0;
	bool ok = index_number(looking->index, &numbers, edge - 1, &number, err) &&
		  index_clock_time(clock, looking->index, edge - 1, &plateau->edge.time_ns, err);

	index_block_fini(&numbers);
	plateau->edge.number = number + 1;
	return ok;
}

// If the highest level is that of the edge itself, the plateau is at its own beginning: the
// release.
static bool find_peak(struct looking *looking, struct index_clock *clock, uint64_t from,
		      uint64_t to, struct plateau *plateau, struct err *err)
{
	const struct window_query query = {
		.from = from, .to = to, .peaks_only = true, .group = group_of, .context = looking
	};
	struct window_detail detail = { 0 };

	if (!(looking->alone ? index_peak_of_all(looking->index, clock, &query, &detail, err)
			     : index_detail(looking->index, clock, &query, &detail, 1, err)))
		return false;
	plateau->bytes = detail.peak_bytes;
	plateau->edge = (struct moment_edge){ .exact = true };
	if (detail.peak_edge > from)
		return set_edge(looking, clock, detail.peak_edge, plateau, err);
	if (looking->released) {
		plateau->edge.time_ns = looking->released_ns;
		plateau->edge.number = looking->released;
	}
	return true;
}

// False without an error: the index cannot answer, and the caller reads the trace instead.
bool index_plateau(struct index *index, struct index_clock *clock, struct reader *reader,
		   process_id process, uint64_t number, struct plateau *plateau, struct err *err)
{
	struct looking looking = { .index = index, .reader = reader, .process = process };
	const struct present_options options = { .inherits = process,
						 .edge = { .number = number, .exact = true },
						 .before = note_release,
						 .context = &looking };
	uint64_t from = WINDOW_START, to;

	*plateau = (struct plateau){ .edge = { .exact = true } };
	if (!has_one_heap(&looking) || !index_moment_knows(index, reader, &options))
		return false;
	if (!index_moment_calls(index, reader, &options, err) ||
	    !edge_of(&looking, number, &to, err) ||
	    (looking.released && !edge_of(&looking, looking.released, &from, err)))
		return false;
	if (is_between_halves(index, from) || is_between_halves(index, to))
		return false;
	plateau->from_ns = looking.released_ns;
	return find_peak(&looking, clock, from, to, plateau, err) &&
	       level_at(&looking, to, &plateau->bytes_end, err);
}
