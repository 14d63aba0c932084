// Three passes over the window: the level, the buffers, and who made it.
//
// The level goes through engine/prominence.h. Where nothing is left out, it does so by stretches of
// some hundred steps, whose highest and lowest levels the index knows: only a stretch in which
// something could begin or end is looked into (meter_pass). What ends with its process is held back
// until something happens after it, so that the fall to 0 at the end is no spike's end. For
// example, levels 0, 5 MiB, 1 MiB, and the process ends: the spike is 4 MiB over 1 MiB, and not 5
// MiB over 0.
//
// Of more than a million spikes the lower half goes. The tops of those that will be shown are then
// looked up once more, with what each place held there (spike_sites.c).
#include "report/find/spikes.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/find/spike_sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ROWS_KEPT = 1 << 20,   // found spikes; beyond that the lower half goes
	BUFFERS_MAX = 1 << 20, // different buffers that are followed
	CANDIDATES_MORE = 128, // besides those shown: some may turn out to span the window
};

// ---- the level, step by step ----

// What ends with its process is held back until something else happens after it; a fall, until the
// next change shows whether it is the other half of its realloc.
struct meter {
	struct window *window;
	uint64_t level;
	uint64_t held, held_edge, held_ns;
	uint64_t fallen_edge, fallen_ns; // 0: no fall is held back
	void (*step)(void *context, uint64_t edge, uint64_t time_ns, uint64_t level);
	void *context;
};

// At the window's first edge. `spikes` has its level and the least height.
static struct meter meter_of(const struct spikes *spikes, const struct query_context *asked,
			     void (*step)(void *context, uint64_t edge, uint64_t time_ns,
					  uint64_t level),
			     void *context)
{
	return (struct meter){ .window = asked->window,
			       .level = spikes->level_from,
			       .step = step,
			       .context = context };
}

// The fall that is held back was a step of its own: so it is where a stretch begins, since a
// realloc is in one stretch with both its steps, and where the window ends.
static void meter_settle(struct meter *meter)
{
	if (meter->fallen_edge)
		meter->step(meter->context, meter->fallen_edge, meter->fallen_ns, meter->level);
	meter->fallen_edge = 0;
}

// Whether a change is the second step of the event whose first is the fall that is held back.
static bool is_other_half(const struct meter *meter, const struct window_change *change)
{
	return change->up && !change->exit && change->edge == meter->fallen_edge + 1 &&
	       window_edge_splits(meter->window, meter->fallen_edge);
}

// Takes one change of the window. `step` is called once for each event of the trace, with the level
// after it: an event may be several changes (both halves of a realloc, all that a process had when
// it ended). Of one step only the last of them carries `last`; a realloc has two steps, and of a
// buffer that grows from 4 to 8 MiB the level between them is lower by 4 MiB, and never was. With
// filters the second may be left out: then the first is all that happened. So each fall is held
// back until the next change. `held` is what ended
// with its process since: it is still part of `level` until anything else happens.
static void meter_read(struct meter *meter, const struct window_change *change)
{
	ASSERT(meter->step);
	if (meter->fallen_edge && !is_other_half(meter, change))
		meter_settle(meter);
	meter->fallen_edge = 0;
	if (change->exit) {
		meter->held += change->bytes;
		meter->held_edge = change->edge;
		meter->held_ns = change->time_ns;
		return;
	}
	if (meter->held) {
		meter->level -= meter->held;
		meter->held = 0;
		meter->step(meter->context, meter->held_edge, meter->held_ns, meter->level);
	}
	meter->level += change->up ? change->bytes : 0 - change->bytes;
	if (!change->last)
		return;
	if (change->up) {
		meter->step(meter->context, change->edge, change->time_ns, meter->level);
		return;
	}
	meter->fallen_edge = change->edge;
	meter->fallen_ns = change->time_ns;
}

// A stretch that is not looked into: the level behind it. False: nothing happened in it.
// The level before the stretch is without what was held: the process is gone, so what it had cannot
// come back. The stretch has its own highest and lowest level, so none of its steps is needed.
static bool meter_pass(struct meter *meter, const struct window_stretch *stretch)
{
	uint64_t level = meter->level - meter->held;

	ASSERT(!meter->fallen_edge);
	if (stretch->bytes_low == level && stretch->bytes_high == level)
		return false;
	meter->held = 0;
	meter->level = stretch->bytes_end;
	return true;
}

// ---- a pass: the level ----

// Where something was in a stretch that was not looked into: the stretch's end, marked.
// A hill of a stretch that was passed over is known by its level, and by the stretch in which that
// was; the edge itself is found by a second pass (find_edges), and only for the rows that are
// shown. Edges are below 2^63, so the mark is no edge's own bit.
static const uint64_t somewhere = UINT64_C(1) << 63;

static uint64_t place_of(uint64_t edge)
{
	return edge & ~somewhere;
}

// One group of equal buffers while the window goes by. `live` counts those that live now, of which
// some may have begun before the window; `live_most` of more than one rules the group out as a
// series.
struct buffer {
	struct spikes_series series;
	uint64_t live, live_most;
	uint64_t began_ns; // the one that lives
};

// What the first passes gather. `hills` is bounded by ROWS_KEPT and `hills_total` counts all, so
// that what was dropped is known; `rise_min` bytes is the least height of a hill and the least size
// of a buffer that is followed.
struct survey {
	struct query_context *asked;
	struct prominence crest;
	struct meter meter;
	uint64_t rise_min;

	struct prominence_hill *hills;
	size_t hills_count, hills_capacity;
	uint64_t hills_total;

	struct buffer *buffers; // by group
	size_t buffers_count, buffers_capacity;
	struct map numbers; // place << 32 | number of the size -> group + 1; 0: left out
	struct map sizes;   // size -> number
	bool dropped;
};

SORT_ORDER(higher, struct prominence_hill,
	   SORT_BY(other->body - other->base, one->body - one->base),
	   SORT_BY(place_of(one->top_edge), place_of(other->top_edge)), SORT_RISES(base))

static void keep_hill(void *context, const struct prominence_hill *hill)
{
	struct survey *survey = context;

	ASSERT(survey->hills_count <= ROWS_KEPT);
	survey->hills_total++;
	if (survey->hills_count == ROWS_KEPT) {
		// Of 2^20 the lower half goes, and the next 2^19 are kept as they come: what is
		// shown, of which there are fewer, is always among the kept ones.
		qsort(survey->hills, survey->hills_count, sizeof *survey->hills, higher);
		survey->hills_count /= 2;
	}
	*MEM_ADD(survey->hills, survey->hills_count, survey->hills_capacity) = *hill;
}

// The group of a cell (one process, stack and size), or WINDOW_SKIP where its size is below
// rise_min, the filters leave it out, or there are too many groups already. A group that was
// refused once stays refused: its number is 0, so that half of its blocks are not followed by
// chance.
static uint32_t group_of(void *context, const struct window_cell *cell)
{
	struct survey *survey = context;
	uint64_t *number, *size;
	uint32_t place;
	bool added;

	if (cell->size < survey->rise_min || !query_context_selects(survey->asked, cell))
		return WINDOW_SKIP;
	place = query_context_place(survey->asked, cell->process, cell->stack);
	size = map_put(&survey->sizes, cell->size, &added);
	if (added)
		*size = survey->sizes.count;
	// A group is a place and a size, so that 40 buffers of 1 MiB from one call are one series,
	// and those of 2 MiB beside them another.
	number = map_put(&survey->numbers, (uint64_t)place << 32 | *size, &added);
	if (!added)
		return *number ? (uint32_t)*number - 1 : WINDOW_SKIP;
	if (survey->buffers_count == BUFFERS_MAX) {
		survey->dropped = true;
		*number = 0;
		return WINDOW_SKIP;
	}
	MEM_ROOM(survey->buffers, survey->buffers_capacity, survey->buffers_count + 1);
	survey->buffers[survey->buffers_count] = (struct buffer){
		.series = { .place = place,
			    .size = cell->size,
			    .period_least_ns = UINT64_MAX,
			    .lived_least_ns = UINT64_MAX },
	};
	*number = ++survey->buffers_count;
	return (uint32_t)*number - 1;
}

// A buffer of the group was allocated at `time_ns`.
static void buffer_begins(struct buffer *buffer, uint64_t time_ns)
{
	struct spikes_series *series = &buffer->series;
	uint64_t period_ns = time_ns - series->last_ns;

	if (++buffer->live > buffer->live_most)
		buffer->live_most = buffer->live;
	// A period is from one beginning to the next, so there are none at the first.
	if (series->count++ == 0) {
		series->first_ns = time_ns;
	} else {
		if (period_ns < series->period_least_ns)
			series->period_least_ns = period_ns;
		if (period_ns > series->period_most_ns)
			series->period_most_ns = period_ns;
	}
	series->last_ns = time_ns;
	buffer->began_ns = time_ns;
}

// A buffer of the group ended. Its lifetime is that since the last beginning, which is right where
// no two live at a time; where two do, the group is no series and its lifetimes are not shown.
static void buffer_ends(struct buffer *buffer, const struct window_change *change)
{
	struct spikes_series *series = &buffer->series;
	uint64_t lived_ns = change->time_ns - buffer->began_ns;

	if (buffer->live)
		buffer->live--;
	if (series->count == 0 || change->exit)
		return; // it was there before the window, or never ended
	series->ended++;
	series->lived_ns += lived_ns;
	if (lived_ns < series->lived_least_ns)
		series->lived_least_ns = lived_ns;
	if (lived_ns > series->lived_most_ns)
		series->lived_most_ns = lived_ns;
}

// The meter's step: the level after each step goes to the search for hills.
static void climb(void *context, uint64_t edge, uint64_t, uint64_t level)
{
	struct survey *survey = context;

	prominence_add(&survey->crest, edge, level);
}

static bool look_at(void *context, const struct window_change *change)
{
	struct survey *survey = context;

	meter_read(&survey->meter, change);
	return true;
}

// Within a stretch whose levels differ by less than rise_min nothing can be told apart, in whatever
// order they come: its highest and its lowest level are all that matters, and where exactly they
// were is found out later, of what is shown.
static bool look_past(void *context, const struct window_stretch *stretch)
{
	struct survey *survey = context;
	uint64_t level = survey->meter.level - survey->meter.held;
	uint64_t low = stretch->bytes_low < level ? stretch->bytes_low : level;
	uint64_t high = stretch->bytes_high > level ? stretch->bytes_high : level;
	uint64_t edge = stretch->to | somewhere;

	ASSERT(low <= level && level <= high);
	ASSERT(survey->rise_min > 0);
	meter_settle(&survey->meter);
	if (high - low >= survey->rise_min)
		return false;
	if (!meter_pass(&survey->meter, stretch))
		return true;
	prominence_add(&survey->crest, edge, level);
	prominence_add(&survey->crest, edge, stretch->bytes_high);
	prominence_add(&survey->crest, edge, stretch->bytes_low);
	prominence_add(&survey->crest, edge, stretch->bytes_end);
	return true;
}

// First pass: finds the hills of the window between its edges. False: the index cannot be read.
static bool take_survey(const struct spikes *spikes, struct survey *survey, struct err *err)
{
	struct query_context *asked = survey->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);

	survey->meter = meter_of(spikes, asked, climb, survey);
	prominence_init(&survey->crest, spikes->rise_min, asked->from, spikes->level_from,
			keep_hill, survey);
	if (!window_curve(asked->window, &query, look_past, look_at, survey, err))
		return false;
	meter_settle(&survey->meter);
	prominence_finish(&survey->crest);
	return true;
}

// ---- each large buffer ----

// `group` is what group_of has returned for the change's cell.
static bool look_at_buffer(void *context, const struct window_change *change)
{
	struct survey *survey = context;

	if (change->up)
		buffer_begins(&survey->buffers[change->group], change->time_ns);
	else
		buffer_ends(&survey->buffers[change->group], change);
	return true;
}

// Second pass: each large buffer by itself. Those that were live before the window are asked for
// first, so that one that ends in it and one that begins in it count as two at a time.
static bool follow_buffers(struct survey *survey, struct err *err)
{
	struct query_context *asked = survey->asked;
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct window_query before;
	struct window_result result;

	query.by_size = true;
	query.size_min = survey->rise_min;
	query.as_it_is = true;
	query.group = group_of;
	query.context = survey;
	before = query;
	// An empty window: what is present at its end is what is live where the real one begins.
	before.to = before.from;
	if (!window_ask(asked->window, &before, &result, err))
		return false;
	for (uint32_t g = 0; g < result.rows_count; g++) {
		struct buffer *buffer = &survey->buffers[g];

		buffer->live = buffer->live_most = window_present(&result.rows[g]).count;
	}
	window_result_fini(&result);
	return window_changes(asked->window, &query, look_at_buffer, survey, err);
}

static void survey_fini(struct survey *survey)
{
	prominence_fini(&survey->crest);
	MEM_FREE(survey->hills, survey->buffers);
	MAP_FINI(&survey->numbers, &survey->sizes);
}

// ---- where in their stretches tops and valleys were ----

// An edge of a row that is known by its level alone. A top and the body of a spike are the first
// step of that level in the stretch; the body of a group of hills, which is a valley, the last one.
// Where a hill starts, any edge before the rise will do, so it is the stretch's beginning.
struct wanted {
	uint64_t *edge; // `somewhere`, until it is found
	uint64_t stretch;
	uint64_t level;
	enum { WANTED_FIRST, WANTED_LAST, WANTED_START } which;
};

struct seeking {
	struct wanted *list; // in the order of stretches
	size_t count, next;
	uint64_t from, to; // of the stretch that is looked into
	struct meter meter;
};

SORT_ORDER(in_order, struct wanted, SORT_RISES(stretch))

// Gives the edge of this step to all who want its level in this stretch. `somewhere` is still set
// where nothing was found yet, so WANTED_FIRST takes one edge and WANTED_LAST each one after it.
static void seek_step(void *context, uint64_t edge, uint64_t, uint64_t level)
{
	struct seeking *seeking = context;

	if (edge <= seeking->from || edge > seeking->to)
		return;
	for (size_t i = seeking->next;
	     i < seeking->count && seeking->list[i].stretch == seeking->to; i++) {
		const struct wanted *wanted = &seeking->list[i];

		if (level == wanted->level && wanted->which != WANTED_START &&
		    (wanted->which == WANTED_LAST || *wanted->edge & somewhere))
			*wanted->edge = edge;
	}
}

// False ends the pass: all wanted edges lie before this one.
static bool seek_change(void *context, const struct window_change *change)
{
	struct seeking *seeking = context;

	meter_read(&seeking->meter, change);
	return seeking->next < seeking->count;
}

// A hill may begin with the stretch in which its base was.
static bool seek_past(void *context, const struct window_stretch *stretch)
{
	struct seeking *seeking = context;
	bool whole = true;

	meter_settle(&seeking->meter);
	while (seeking->next < seeking->count && seeking->list[seeking->next].stretch < stretch->to)
		seeking->next++;
	for (size_t i = seeking->next;
	     i < seeking->count && seeking->list[i].stretch == stretch->to; i++) {
		if (seeking->list[i].which == WANTED_START)
			*seeking->list[i].edge = stretch->from;
		else
			whole = false;
	}
	seeking->from = stretch->from;
	seeking->to = stretch->to;
	// Steps of a stretch that is not looked into reach no seek_step: the level is taken from
	// its end.
	if (whole)
		meter_pass(&seeking->meter, stretch);
	return whole;
}

// Notes an edge that is to be found. One that the first pass has seen step by step is exact
// already.
static void want(struct seeking *seeking, uint64_t *edge, uint64_t level, int which)
{
	if (*edge & somewhere)
		seeking->list[seeking->count++] =
			(struct wanted){ edge, place_of(*edge), level, which };
}

// Replaces the marked edges of `rows` by true ones, in one pass that looks into no stretch but
// those that have one. A row has three edges at most.
static bool find_edges(const struct spikes *spikes, struct query_context *asked,
		       struct spikes_row *rows, size_t count, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct seeking seeking = {
		.list = mem_alloc(count * 3 + 1, sizeof *seeking.list),
		.meter = meter_of(spikes, asked, seek_step, &seeking),
	};
	bool ok = true;

	for (size_t i = 0; i < count; i++) {
		struct prominence_hill *hill = &rows[i].hill;

		want(&seeking, &hill->from, hill->base, WANTED_START);
		want(&seeking, &hill->top_edge, hill->top, WANTED_FIRST);
		// Of a spike, the body is its top.
		want(&seeking, &hill->body_edge, hill->body,
		     hill->body < hill->top ? WANTED_LAST : WANTED_FIRST);
	}
	if (seeking.count) {
		qsort(seeking.list, seeking.count, sizeof *seeking.list, in_order);
		ok = window_curve(asked->window, &query, seek_past, seek_change, &seeking, err);
		meter_settle(&seeking.meter);
	}
	mem_free(seeking.list);
	return ok;
}

// ---- where the spikes begin and end ----

// The pass that dates the rows. `open` are those whose hill may have begun and has not ended: a row
// goes from `rows` to `open` once and leaves it once, so the pass costs the steps and the rows that
// overlap, not their product.
struct flanks {
	struct spikes_row **rows; // in the order of where they may begin
	size_t count, next;
	struct spikes_row **open;
	size_t open_count;
	struct meter meter;
	uint64_t before; // the level before this step
};

SORT_ORDER(earlier, struct spikes_row *const, SORT_BY((*one)->hill.from, (*other)->hill.from),
	   SORT_BY(*one, *other))

// So far the level is at the base. The next step that lifts it is when the spike begins.
static void begin_at(struct spikes_row *row, uint64_t edge, uint64_t level)
{
	row->begin_edge = edge;
	row->begin_ns = UINT64_MAX;
	row->half_begin_ns = UINT64_MAX;
	// Below the base, if the level was lower once more before it rose.
	row->risen = row->hill.body - level;
}

// The level of an open row after a step. False: the row is over.
static bool walk_row(struct spikes_row *row, uint64_t edge, uint64_t time_ns, uint64_t level)
{
	bool rising = edge <= row->hill.body_edge;
	bool low = level <= row->hill.base;
	bool half = level <= row->hill.base + (row->hill.body - row->hill.base) / 2;

	ASSERT(row->hill.base <= row->hill.body);
	if (rising && low)
		begin_at(row, edge, level);
	else if (rising && row->begin_ns == UINT64_MAX)
		row->begin_ns = time_ns;
	if (rising && half)
		row->half_begin_ns = UINT64_MAX;
	else if (rising && row->half_begin_ns == UINT64_MAX)
		row->half_begin_ns = time_ns;
	if (edge == row->hill.top_edge)
		row->top_ns = time_ns;
	if (!rising && half && row->half_end_ns == 0)
		row->half_end_ns = time_ns;
	if (rising || !low)
		return true;
	row->end_ns = time_ns;
	row->end_edge = edge;
	return false;
}

// The meter's step. A row is opened by the first step after the edge where its hill may begin, with
// the level of before that step, from which it rises.
static void walk(void *context, uint64_t edge, uint64_t time_ns, uint64_t level)
{
	struct flanks *flanks = context;
	size_t kept = 0;

	ASSERT(flanks->next <= flanks->count && flanks->open_count <= flanks->count);
	while (flanks->next < flanks->count && flanks->rows[flanks->next]->hill.from < edge) {
		struct spikes_row *row = flanks->rows[flanks->next++];

		begin_at(row, row->hill.from, flanks->before);
		ASSERT(flanks->open_count < flanks->count);
		flanks->open[flanks->open_count++] = row;
	}
	for (size_t i = 0; i < flanks->open_count; i++) {
		struct spikes_row *row = flanks->open[i];

		if (walk_row(row, edge, time_ns, level))
			flanks->open[kept++] = row;
	}
	flanks->open_count = kept;
	flanks->before = level;
}

// False ends the pass: all rows are over.
static bool find_flanks(void *context, const struct window_change *change)
{
	struct flanks *flanks = context;

	meter_read(&flanks->meter, change);
	return flanks->next < flanks->count || flanks->open_count > 0;
}

// Whether a stretch may change what is known of an open row.
static bool row_needs(const struct spikes_row *row, const struct window_stretch *stretch)
{
	const struct prominence_hill *hill = &row->hill;
	uint64_t half = hill->base + (hill->body - hill->base) / 2;

	if ((hill->top_edge > stretch->from && hill->top_edge <= stretch->to) ||
	    (hill->body_edge > stretch->from && hill->body_edge <= stretch->to) ||
	    stretch->bytes_low <= hill->base)
		return true;
	if (hill->body_edge < stretch->to)
		return row->half_end_ns == 0 && stretch->bytes_low <= half;
	if (row->begin_ns == UINT64_MAX)
		return true;
	return row->half_begin_ns == UINT64_MAX ? stretch->bytes_high > half
						: stretch->bytes_low <= half;
}

// Whether a row has not risen at the stretch's end, wherever in it the level was: all of it is at
// the base or below, and before the body.
static bool stays_low(const struct spikes_row *row, const struct window_stretch *stretch)
{
	return row->hill.body_edge > stretch->to && stretch->bytes_high <= row->hill.base;
}

// Whether the stretch may be passed over whole: no row opens in it, and none that is open can
// change, but that one which stays low begins after it. What is held back is a step of its own, at
// which others may change.
static bool flanks_past(void *context, const struct window_stretch *stretch)
{
	struct flanks *flanks = context;
	bool held = flanks->meter.held > 0;

	meter_settle(&flanks->meter);
	if (flanks->next < flanks->count && flanks->rows[flanks->next]->hill.from < stretch->to)
		return false;
	for (size_t i = 0; i < flanks->open_count; i++) {
		const struct spikes_row *row = flanks->open[i];

		if ((held || !stays_low(row, stretch)) && row_needs(row, stretch))
			return false;
	}
	for (size_t i = 0; i < flanks->open_count; i++)
		if (!held && stays_low(flanks->open[i], stretch))
			begin_at(flanks->open[i], stretch->to, stretch->bytes_end);
	if (meter_pass(&flanks->meter, stretch))
		flanks->before = stretch->bytes_end;
	return true;
}

// Sets the times of all rows: begin, top, end, and where half of the height was passed. A row that
// is still open where the window ends is `cut`, and ends there.
//
// UINT64_MAX in begin_ns and half_begin_ns is "not yet", and so is 0 in half_end_ns. For example
// levels 1, 3, 9, 4, 1 at 10, 20, 30, 40 and 50 ns, base 1 and body 9: it begins at 20 ns, half of
// the height is 5, so half_begin_ns is 30 and half_end_ns 40, and it ends at 50 ns.
static bool find_intervals(const struct spikes *spikes, struct query_context *asked,
			   struct spikes_row *rows, size_t count, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	struct flanks flanks = {
		.rows = mem_alloc(count + 1, sizeof *flanks.rows),
		.open = mem_alloc(count + 1, sizeof *flanks.open),
		.count = count,
		.before = spikes->level_from,
		.meter = meter_of(spikes, asked, walk, &flanks),
	};
	bool ok;

	for (size_t i = 0; i < count; i++)
		flanks.rows[i] = &rows[i];
	qsort(flanks.rows, count, sizeof *flanks.rows, earlier);
	ok = window_curve(asked->window, &query, flanks_past, find_flanks, &flanks, err);
	meter_settle(&flanks.meter);
	for (size_t i = 0; i < flanks.open_count; i++) {
		struct spikes_row *row = flanks.open[i];

		row->cut = true;
		row->end_ns = asked->to_ns;
		row->end_edge = asked->to;
		if (row->half_end_ns == 0)
			row->half_end_ns = asked->to_ns;
	}
	MEM_FREE(flanks.rows, flanks.open);
	return ok;
}

// ---- rows ----

// The first `rows_max` of each kind; spikes first, then those that take most of the window.
static void choose_rows(struct spikes *spikes, struct spikes_row *rows, size_t count,
			uint64_t rows_max)
{
	spikes->rows = mem_alloc(count + 1, sizeof *spikes->rows);
	for (int whole = 0; whole < 2; whole++) {
		uint64_t most = whole && rows_max > SPIKES_HILLS_MAX ? SPIKES_HILLS_MAX : rows_max;
		uint64_t shown = 0;

		for (size_t i = 0; i < count; i++)
			if (rows[i].whole == whole && (most == 0 || shown++ < most))
				spikes->rows[spikes->rows_count++] = rows[i];
	}
}

// From hills to rows: the highest are dated, and then it is known which of them take most of the
// window and are shown apart. CANDIDATES_MORE more than asked for are dated for that reason.
static bool find_rows(struct spikes *spikes, struct survey *survey, uint64_t rows_max,
		      struct err *err)
{
	struct query_context *asked = survey->asked;
	size_t count = survey->hills_count;
	struct spikes_row *rows;
	bool ok;

	ASSERT(survey->rise_min > 0);
	if (rows_max && rows_max + CANDIDATES_MORE < count)
		count = (size_t)rows_max + CANDIDATES_MORE;
	if (survey->hills_count > 1)
		qsort(survey->hills, survey->hills_count, sizeof *survey->hills, higher);
	rows = mem_alloc(count + 1, sizeof *rows);
	for (size_t i = 0; i < count; i++)
		rows[i].hill = survey->hills[i];
	ok = find_edges(spikes, asked, rows, count, err) &&
	     find_intervals(spikes, asked, rows, count, err);
	for (size_t i = 0; i < count; i++)
		rows[i].whole = rows[i].half_end_ns - rows[i].half_begin_ns >
				(asked->to_ns - asked->from_ns) / 2;
	if (ok)
		choose_rows(spikes, rows, count, rows_max);
	mem_free(rows);
	return ok && spike_sites_find(asked, spikes->rows, spikes->rows_count, err);
}

// All bytes that were allocated but for one buffer of them.
static unsigned __int128 saved_of(const struct spikes_series *series)
{
	ASSERT(series->count > 0);
	return (unsigned __int128)series->size * (series->count - 1);
}

SORT_ORDER(saves_more, struct spikes_series, SORT_BY(saved_of(other), saved_of(one)),
	   SORT_RISES(first_ns), SORT_RISES(place))

// Keeps the groups of which no two lived at a time, ordered by what one buffer that is kept would
// save: 40 buffers of 1 MiB save 39 MiB of allocations.
static void find_series(struct spikes *spikes, const struct survey *survey, uint64_t rows_max)
{
	ASSERT(spikes->series_count == 0);
	spikes->series = mem_alloc(survey->buffers_count + 1, sizeof *spikes->series);
	for (size_t i = 0; i < survey->buffers_count; i++)
		// One that is reused must never have lived twice at a time: then one buffer had
		// been enough.
		if (survey->buffers[i].series.count >= 2 && survey->buffers[i].live_most == 1)
			spikes->series[spikes->series_count++] = survey->buffers[i].series;
	ASSERT(spikes->series_count <= survey->buffers_count);
	qsort(spikes->series, spikes->series_count, sizeof *spikes->series, saves_more);
	spikes->series_total = spikes->series_count;
	if (rows_max && rows_max < spikes->series_count)
		spikes->series_count = (size_t)rows_max;
	spikes->sizes_dropped = survey->dropped;
}

// The level where the window begins and its peak: of it follows the least height of a spike, a
// hundredth, if none was asked for.
static bool find_levels(struct spikes *spikes, struct query_context *asked, struct err *err)
{
	struct heap_amount level;
	struct query_context_peak peak;

	if (!query_context_level(asked, asked->from, &level, err))
		return false;
	spikes->level_from = level.bytes;
	if (!query_context_peak(asked, asked->from, asked->to, &peak, err))
		return false;
	spikes->peak = peak.bytes;
	spikes->peak_ns = window_edge_time(asked->window, peak.edge);
	return true;
}

// The levels at the window's edges first, since the least height that counts follows from the peak;
// then one reading of all changes finds hills and buffers, and only those that are kept are asked
// for their sites.
bool spikes_find(struct spikes *spikes, struct query_context *asked,
		 const struct spikes_options *options, struct err *err)
{
	struct survey survey = { .asked = asked };
	bool ok;

	ASSERT(asked->window);
	*spikes = (struct spikes){ 0 };
	if (!query_context_match(asked, err) || !find_levels(spikes, asked, err))
		return false;
	spikes->rise_min = options->rise_min ? options->rise_min : spikes->peak / SPIKES_RISE_PART;
	if (spikes->rise_min == 0)
		spikes->rise_min = 1;
	survey.rise_min = spikes->rise_min;
	ok = take_survey(spikes, &survey, err) && follow_buffers(&survey, err);
	spikes->rows_total = survey.hills_total;
	spikes->level_to = survey.meter.level;
	if (ok && survey.hills_total > ROWS_KEPT &&
	    (options->rows_max == 0 || options->rows_max > ROWS_KEPT / 4))
		ok = err_set(err, ERR_LIMIT,
			     "there are %" PRIu64 " spikes; a larger --min-bytes finds fewer",
			     survey.hills_total);
	if (ok) {
		find_series(spikes, &survey, options->all_series ? 0 : options->rows_max);
		ok = find_rows(spikes, &survey, options->rows_max, err);
	}
	survey_fini(&survey);
	if (!ok)
		spikes_fini(spikes);
	return ok;
}

void spikes_fini(struct spikes *spikes)
{
	MEM_FREE(spikes->rows, spikes->series);
	*spikes = (struct spikes){ 0 };
}

const char *spikes_lasted(const struct spikes_row *row, const struct reader *reader,
			  char out[static 64])
{
	uint64_t lasted_ns = row->half_end_ns - row->half_begin_ns;
	uint64_t tick_ns = reader_info(reader)->tick_ns;

	if (lasted_ns >= tick_ns)
		snprintf(out, 64, "%s", STR_DURATION(lasted_ns));
	else
		snprintf(out, 64, "less than a tick of the clock (%s)", STR_DURATION(tick_ns));
	return out;
}
