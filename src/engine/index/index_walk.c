// The single allocations of a window, from steps: those that end in it, in the order of their ends,
// and then those that live at its end.
//
// What a lifetime needs (its kind, the site of that, the group) is somewhere in tables of
// megabytes. So each that is met waits for sixteen others, while that is fetched.
#include "engine/index/index_ask.h"

#include "base/mem.h"
#include "engine/index/index_sizes.h"

// One that was met, and waits while what it needs is fetched.
struct single_soon {
	uint64_t begin, end;
	uint32_t cell;
};

enum { SINGLES_AHEAD = 16 };

struct single {
	struct index *index;
	struct index_clock *clock;
	const struct window_query *query;
	struct index_groups groups;
	bool (*each)(void *context, const struct window_allocation *allocation);
	void *context;
	struct err *err;
	bool stopped, failed;
	uint64_t *latest;    // by group, or NULL: what began from there on is not wanted
	size_t latest_count; // groups
	struct single_soon soon[SINGLES_AHEAD];
	uint64_t met;
};

// How and when it ended, if nothing but its process ended it.
static bool learn_exit(struct single *single, struct window_allocation *allocation)
{
	const struct index *index = single->index;
	process_id process = allocation->cell.process;

	allocation->end_kind = WINDOW_END_NEVER;
	allocation->end_ns = index->duration_ns;
	if (process < index->exits_count && index->exits[process].step != WINDOW_NEVER) {
		allocation->end = index->exits[process].step;
		allocation->end_ns = index->exits[process].time_ns;
		allocation->end_kind = (uint8_t)index->exits[process].kind;
	}
	return !single->query->exit_frees || allocation->end >= single->query->from;
}

// One lifetime of the window, if the query selects it: its cell, its times and how it ended. False
// ends the walk, by an error or because `each` had enough.
static bool single_one(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	struct single *single = context;
	const struct window_query *query = single->query;
	struct window_allocation allocation = { .begin = begin,
						.end = end,
						.end_kind = WINDOW_END_FREE,
						.begin_thread = TRACE_NONE,
						.end_thread = TRACE_NONE };
	bool dated = !query->undated || window_by_lifetime(query);

	if (single->stopped)
		return false;
	allocation.group = index_group(&single->groups, cell);
	if (allocation.group == WINDOW_SKIP)
		return true;
	allocation.cell = index_cell(single->index, cell);
	if (dated && !index_clock_time(single->clock, single->index, begin, &allocation.begin_ns,
				       single->err)) {
		single->failed = single->stopped = true;
		return false;
	}
	if (end == WINDOW_NEVER) {
		if (!learn_exit(single, &allocation))
			return true;
	} else if (dated && !index_clock_time(single->clock, single->index, end, &allocation.end_ns,
					      single->err)) {
		single->failed = single->stopped = true;
		return false;
	} else if (index_destroyed(single->index, end)) {
		allocation.end_kind = WINDOW_END_DESTROY;
	}
	if (!window_has_lifetime(query, allocation.end_ns - allocation.begin_ns))
		return true;
	single->stopped = !single->each(single->context, &allocation);
	return !single->stopped;
}

// Its kind is fetched from memory first, then its site, then it is looked at.
static void expect_single(const struct single *single)
{
	const struct cells *cells = &single->index->cells;
	bool by_cell = single->groups.by_cell;
	uint32_t cell = single->soon[single->met % SINGLES_AHEAD].cell, site;

	cells_expect(cells, cell);
	if (by_cell)
		mem_expect(&single->groups.of[cell]);
	if (single->met < SINGLES_AHEAD / 2)
		return;
	cell = single->soon[(single->met - SINGLES_AHEAD / 2) % SINGLES_AHEAD].cell;
	site = cells_cell(cells, cell).site;
	mem_expect(cells_site(cells, site));
	if (!by_cell)
		mem_expect(&single->groups.of[site]);
}

static bool look_at(struct single *single, uint64_t number)
{
	const struct single_soon *soon = &single->soon[number % SINGLES_AHEAD];

	return single_one(single, soon->cell, soon->begin, soon->end);
}

// Where groups differ by size, whether it needs no look at the kind.
static bool single_is_unwanted(const struct single *single, uint32_t cell, uint64_t begin)
{
	uint32_t group = single->groups.by_cell ? single->groups.of[cell] : INDEX_GROUP_UNKNOWN;

	return group == WINDOW_SKIP ||
	       (group < single->latest_count && begin >= single->latest[group]);
}

// Some others are met before one is looked at; single_rest looks at the last of them.
static bool single_soon(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	struct single *single = context;

	if (single_is_unwanted(single, cell, begin))
		return !single->stopped;
	if (single->met >= SINGLES_AHEAD && !look_at(single, single->met - SINGLES_AHEAD))
		return false;
	single->soon[single->met % SINGLES_AHEAD] = (struct single_soon){ begin, end, cell };
	expect_single(single);
	single->met++;
	return true;
}

// False: a time could not be read.
static bool single_rest(struct single *single)
{
	uint64_t i = single->met < SINGLES_AHEAD ? 0 : single->met - SINGLES_AHEAD;

	while (i < single->met && look_at(single, i))
		i++;
	single->met = 0;
	return !single->failed;
}

// What began before the window comes first. Those that wait were given before the step.
static bool single_enough(void *context, uint64_t step)
{
	struct single *single = context;
	const struct window_query *query = single->query;

	if (!query->enough || step < query->from)
		return false;
	if (single_rest(single) && !single->stopped)
		single->stopped = query->enough(single->context, step);
	return single->stopped;
}

// One side of what lives at an edge: begun before a step, or not.
struct side {
	struct single *single;
	uint64_t step;
	bool before;
};

static bool single_of_side(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	const struct side *side = context;

	return (begin < side->step) != side->before || single_soon(side->single, cell, begin, end);
}

static bool enough_of_side(void *context, uint64_t step)
{
	const struct side *side = context;

	return single_enough(side->single, step);
}

// All but what both began and ended in the window lives at one of its edges: what began before it
// at its beginning, and what began in it at its end.
static bool walk_edges(struct single *single, struct err *err)
{
	enum { BEFORE = 1 << WINDOW_AOFI | 1 << WINDOW_AOFO, INSIDE = 1 << WINDOW_AIFO };
	const struct window_query *query = single->query;
	struct side before = { single, query->from, true };
	struct side inside = { single, query->from, false };
	const struct index_visitor at_from = { &before, single_of_side, NULL };
	const struct index_visitor at_to = { &inside, single_of_side, enough_of_side };
	bool ok = true;

	if (query->walk_types & BEFORE)
		ok = index_spanning(single->index, query->from, query->from, &at_from, err) &&
		     single_rest(single);
	if (ok && query->walk_types & INSIDE && !single->stopped)
		ok = index_spanning(single->index, query->to, query->to, &at_to, err) &&
		     single_rest(single);
	return ok;
}

// From which step on a group's allocations need not be given, since enough of it began before. Of
// fifty million blocks, ten of each size are shown: those few are found in the blocks of steps in
// which they began and ended, and all others are passed over by one comparison. Where a group is of
// several sizes, the latest of theirs is right for all.
static bool find_latest(struct single *single, struct err *err)
{
	const struct window_query *query = single->query;
	struct index_first *sizes = single->groups.sizes;
	size_t count = single->groups.sizes_count, capacity = 0;

	if (!query->first || !query->by_size_alone || window_by_lifetime(query))
		return true;
	for (size_t i = 0; i < count; i++)
		sizes[i].wanted = query->first(query->context, sizes[i].group);
	if (!index_sizes_first(single->index, sizes, count, query->from, query->to, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t *latest =
			MEM_FILL(single->latest, single->latest_count, capacity, sizes[i].group);

		*latest = sizes[i].latest > *latest ? sizes[i].latest : *latest;
	}
	return true;
}

// What ends in the window, then what lives at its end, so each is met once. Where what began and
// ended inside is not asked for, the blocks at the two edges are enough.
bool index_walk(struct index *index, struct index_clock *clock, const struct window_query *query,
		bool (*each)(void *context, const struct window_allocation *allocation),
		void *context, bool *stopped, struct err *err)
{
	struct single single = { .index = index,
				 .clock = clock,
				 .query = query,
				 .each = each,
				 .context = context,
				 .err = err };
	const struct index_visitor visitor = { &single, single_soon, single_enough };
	uint8_t *marks;
	bool ok;

	ASSERT(each);
	ASSERT(query->from <= query->to);
	index_groups_init(&single.groups, index, query);
	if (query->walk_types && !(query->walk_types & 1u << WINDOW_AIFI) &&
	    !index_is_short(index, query)) {
		ok = walk_edges(&single, err);
	} else {
		ok = index_groups_blocks(&single.groups, &marks, err) &&
		     find_latest(&single, err) &&
		     index_ending_in(index, query->from, query->to, marks, &visitor, err) &&
		     single_rest(&single);
		// What lives at `to` began before it, and does not end before it.
		if (ok && !single.stopped)
			ok = index_spanning(index, query->to, query->to, &visitor, err) &&
			     single_rest(&single);
		MEM_FREE(marks, single.latest);
	}
	index_groups_fini(&single.groups);
	if (stopped)
		*stopped = single.stopped;
	return ok;
}
