// The rows of a window, from sums.
//
// Four figures of a site say all that a row has (struct index_figures): what began in the window,
// what lived at its two edges, and what lived at both. The classes are differences of them
// (index_rows.c). For example, a site that had 100 blocks at the first edge and 130 at the last,
// began 600 in between, and has 90 that lived all through:
//
//     stay                   90   persistent (AOFO)
//     from - stay            10   there before, freed in it (AOFI)
//     to - stay              40   begun in it, still there (AIFO)
//     begun - (to - stay)   560   begun and freed in it (AIFI)
//
// `begun`, `from` and `to` are read from snapshots of counts near the edges, and from the steps
// between the snapshot and the edge. `stay` is no difference of counts: it is found from lifetimes.
// In a window of up to shape.short_steps (2^20) its own steps are read, and what ended in them and
// began before is taken from `from`: the 10 above. In a longer one it is the lifetimes that span
// the window, which are in the `long` files, since a lifetime shorter than 2^17 steps spans no
// window of 2^20.
//
// Sites are asked for where the query does not look at sizes, cells where it does. By lifetime
// neither helps: every end in the window is looked at (index_tally.c).
#include "engine/index/index_ask.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "engine/index/index_lists.h"
#include "engine/index/index_rows.h"
#include "engine/index/index_sizes.h"
#include "engine/index/index_tables.h"
#include "engine/index/index_tally.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(INDEX_STRIPE % BITS_GROUP == 0, "a stripe is whole groups of sums");
_Static_assert(WINDOW_TYPES == 4, "four classes are made of the four figures");

// ---- groups ----

void index_groups_init(struct index_groups *groups, struct index *index,
		       const struct window_query *query)
{
	bool by_cell = query->by_size && !query->sizes_count;
	uint32_t keys = by_cell ? index->cells.cells_count : index->cells.sites_count;

	ASSERT(index->cells.sites_count > 0);
	ASSERT(!query->sizes_count || (query->by_size && !query->size_min));
	*groups = (struct index_groups){ .index = index, .query = query, .by_cell = by_cell };
	groups->of = mem_resize(NULL, keys, sizeof *groups->of);
	for (uint32_t i = 0; i < keys; i++)
		groups->of[i] = INDEX_GROUP_UNKNOWN;
	groups->of[0] = WINDOW_SKIP; // steps that do nothing
}

void index_groups_fini(struct index_groups *groups)
{
	MEM_FREE(groups->of, groups->sizes);
	*groups = (struct index_groups){ 0 };
}

static struct window_cell site_as_cell(const struct index *index, uint32_t id)
{
	const struct cells_site *site = cells_site(&index->cells, id);

	return (struct window_cell){ .process = site->process,
				     .thread = site->thread,
				     .stack = site->stack,
				     .heap = site->heap,
				     .layer = WINDOW_HEAP,
				     .orphans = site->orphans };
}

// The cell as window.h tells of it.
struct window_cell index_cell(const struct index *index, uint32_t cell)
{
	struct window_cell told = site_as_cell(index, cells_cell(&index->cells, cell).site);

	told.size = cells_cell(&index->cells, cell).size;
	return told;
}

// The caller's function, asked each time; index_group remembers what it said. What is too small is
// left out before its site is looked at, which lies anywhere.
uint32_t index_group_ask(const struct index *index, const struct window_query *query, uint32_t site,
			 uint64_t size)
{
	struct window_cell cell;

	if (query->by_size && size < query->size_min)
		return WINDOW_SKIP;
	cell = site_as_cell(index, site);
	cell.size = query->by_size ? size : 0;
	return query->group ? query->group(query->context, &cell) : 0;
}

// Where groups do not differ by size, one that is in the question stands for all that are.
static uint64_t size_of_all(const struct window_query *query)
{
	return query->sizes_count ? query->sizes[0].least : 0;
}

uint32_t index_group_slow(struct index_groups *groups, uint32_t cell, uint32_t site)
{
	const struct window_query *query = groups->query;
	uint32_t key = groups->by_cell ? cell : site;
	uint64_t size = groups->by_cell ? cells_cell(&groups->index->cells, cell).size
					: size_of_all(query);

	groups->of[key] = index_group_ask(groups->index, query, site, size);
	return groups->of[key];
}

// Each site has a cell, so sites are asked for where sizes are not looked at.
bool index_is_all(struct index *index, const struct window_query *query, uint32_t group)
{
	const struct cells *cells = &index->cells;
	struct index_groups groups;
	bool whole = true;

	if (!query->group && !query->by_size)
		return group == 0;
	for (uint32_t id = 1; whole && !query->by_size && id < cells->sites_count; id++)
		whole = cells_site(cells, id)->orphans ||
			index_group_ask(index, query, id, 0) == group;
	if (!query->by_size || !whole)
		return whole;
	index_groups_init(&groups, index, query);
	for (uint32_t id = 1; whole && id < cells->cells_count; id++)
		whole = cells_site(cells, cells_cell(cells, id).site)->orphans ||
			index_group(&groups, id) == group;
	index_groups_fini(&groups);
	return whole;
}

// By postings of the sites of what is asked for, if these are few.
static bool mark_by_sites(struct index_groups *groups, uint8_t **marks, struct err *err)
{
	enum { FEWER = 8 }; // so many times fewer than steps, so that most blocks are passed over
	const struct window_query *query = groups->query;
	struct index *index = groups->index;
	uint64_t steps = query->to - query->from, postings;
	uint32_t *numbers = mem_alloc(index->cells.sites_count, sizeof *numbers);
	bool known, ok;

	for (uint32_t id = 1; id < index->cells.cells_count; id++)
		if (index_group(groups, id) != WINDOW_SKIP)
			numbers[cells_cell(&index->cells, id).site] = 1;
	ok = index_lists_count(index, numbers, query->from, query->to, &postings, &known, err);
	if (ok && known && postings < steps / FEWER) {
		*marks = mem_alloc((size_t)(steps >> index->shape.block_log2) + 2, 1);
		ok = index_lists_mark(index, numbers, query->from, query->to, *marks, err);
	}
	mem_free(numbers);
	return ok;
}

SORT_ORDER(compare_firsts, struct index_first, SORT_RISES(size))

// Sizes of what is asked for, each once, if they are not so many that some of them are in most
// blocks.
static void find_sizes(struct index_groups *groups)
{
	enum { SIZES_MAX = 4096 };
	const struct cells *cells = &groups->index->cells;
	size_t capacity = 0;
	struct map met = { 0 };

	for (uint32_t id = 1; id < cells->cells_count && groups->sizes_count <= SIZES_MAX; id++) {
		struct cells_cell cell = cells_cell(cells, id);
		uint32_t group = index_group(groups, id);
		bool added = false;

		if (group != WINDOW_SKIP && !cells_site(cells, cell.site)->orphans)
			map_put(&met, cell.size, &added);
		if (added)
			*MEM_ADD(groups->sizes, groups->sizes_count, capacity) =
				(struct index_first){ .size = cell.size, .group = group };
	}
	map_fini(&met);
	if (groups->sizes_count > SIZES_MAX) {
		MEM_FREE(groups->sizes);
		groups->sizes = NULL;
		groups->sizes_count = 0;
	}
	if (groups->sizes_count > 1)
		qsort(groups->sizes, groups->sizes_count, sizeof *groups->sizes, compare_firsts);
}

// Lua's table is one site in all blocks, and its sizes are in four each.
static bool mark_by_sizes(struct index_groups *groups, uint8_t **marks, struct err *err)
{
	const struct window_query *query = groups->query;
	size_t blocks = (size_t)((query->to - query->from) >> groups->index->shape.block_log2) + 2;

	ASSERT(query->by_size && !groups->sizes);
	find_sizes(groups);
	if (!groups->sizes)
		return true;
	if (!*marks)
		*marks = memset(mem_alloc(blocks, 1), 1, blocks);
	return index_sizes_mark(groups->index, groups->sizes, groups->sizes_count, query->from,
				query->to, *marks, err);
}

bool index_groups_blocks(struct index_groups *groups, uint8_t **marks, struct err *err)
{
	const struct window_query *query = groups->query;

	*marks = NULL;
	if ((query->to - query->from) >> groups->index->shape.block_log2 < 2)
		return true;
	return mark_by_sites(groups, marks, err) &&
	       (!query->by_size || mark_by_sizes(groups, marks, err));
}

// ---- what rows are made of ----

// What is needed at each edge, and between them, is found by two threads: each takes what comes
// next.
enum { PARTS_MAX = 4 };

struct loading {
	bool (*load)(void *state, unsigned part, struct err *err);
	void *state;
	unsigned parts;
	atomic_uint next;
	struct err errs[PARTS_MAX];
	bool failed[PARTS_MAX];
};

static void *load_parts(void *context)
{
	struct loading *loading = context;
	unsigned part;

	while ((part = atomic_fetch_add(&loading->next, 1)) < loading->parts)
		loading->failed[part] = !loading->load(loading->state, part, &loading->errs[part]);
	return NULL;
}

// Parts are taken by this thread and another as they come. The first error of any is the answer.
static bool load_all(bool (*load)(void *state, unsigned part, struct err *err), void *state,
		     unsigned parts, struct err *err)
{
	struct loading loading = { .load = load, .state = state, .parts = parts };
	struct thread *thread = thread_start(load_parts, &loading);

	ASSERT(parts > 0 && parts <= PARTS_MAX);
	load_parts(&loading);
	if (thread)
		thread_join(thread);
	for (unsigned i = 0; i < parts; i++) {
		if (!loading.failed[i])
			continue;
		*err = loading.errs[i];
		return false;
	}
	return true;
}

enum { AHEAD = 48, STAYS_AHEAD = 32, LINES = 128 };

// ---- by cell ----

// Side by side: all are looked at, and one cell is far from the next.
struct cell_counts {
	struct index_count from, to;
	uint32_t stay; // or, in a short window, what was there before and ends in it
};

struct cell_state {
	struct index *index;
	const struct window_query *query;
	const struct cells_order *order;
	struct cell_counts *counts;
	struct index_count *to; // in place of those: nothing was before the window
	bool is_short;
	struct index_tallies tallies; // instead of all those: by lifetime
	uint32_t find_site;           // after a stripe; of the thread that finds figures
	// Of the one that takes them: what it writes is in no line of the cache that the other
	// reads, nor in one that is fetched with it.
	_Alignas(LINES) uint32_t take_site;
	struct index_rows rows;
};

static bool count_before(void *context, uint32_t cell, uint64_t, uint64_t)
{
	const struct cell_state *state = context;

	state->counts[cell].stay++;
	return true;
}

// Ends in the window of what began before it.
struct before_filter {
	const struct index_visitor *visitor;
	uint64_t before;
};

static bool visit_before(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	const struct before_filter *filter = context;

	return begin >= filter->before ||
	       filter->visitor->visit(filter->visitor->context, cell, begin, end);
}

// Whether cells of one size are in one group, and meet the same end of a process.
static bool is_by_size(const struct index *index, const struct window_query *query)
{
	ASSERT(!query->by_size_alone || query->by_size);
	return query->by_size_alone && cells_of_one_process(&index->cells);
}

// A quarter of them, that two threads share.
static bool clear_cells(void *context, unsigned part, struct err *)
{
	const struct cell_state *state = context;
	size_t count = state->index->cells.cells_count;
	size_t from = count * part / PARTS_MAX, to = count * (part + 1) / PARTS_MAX;

	if (state->to)
		memset(state->to + from, 0, (to - from) * sizeof *state->to);
	else
		memset(state->counts + from, 0, (to - from) * sizeof *state->counts);
	return true;
}

// One of four parts, which two threads share: what ended or spanned, the counts at both edges, and
// the order of cells.
static bool load_cells(void *context, unsigned part, struct err *err)
{
	struct cell_state *state = context;
	const struct window_query *query = state->query;
	const struct index_visitor visitor = { .context = state, .visit = count_before };
	struct before_filter filter = { &visitor, query->from };
	const struct index_visitor filtered = { .context = &filter, .visit = visit_before };

	if (part == 3 && !is_by_size(state->index, query))
		state->order = cells_order(&state->index->cells);
	if (part == 3 || (state->to && part < 2))
		return true;
	if (state->to)
		return index_counts(state->index, query->to, state->to, sizeof *state->to, err);
	if (part > 0)
		return index_counts(state->index, part == 1 ? query->from : query->to,
				    part == 1 ? &state->counts->from : &state->counts->to,
				    sizeof *state->counts, err);
	if (state->is_short)
		return index_ending(state->index, query->from, query->to, &filtered, err);
	return index_spanning_counts(state->index, query->from, query->to, &state->counts->stay,
				     sizeof *state->counts, err);
}

static struct heap_amount of_size(uint64_t count, uint64_t size)
{
	return (struct heap_amount){ count, count * size };
}

// By lifetime there are no orphans.
static inline struct index_figures tallied_figures(const struct index_tallies *tallies, uint32_t id,
						   uint64_t size)
{
	uint64_t aifi = index_tallied(tallies, id, WINDOW_AIFI);
	uint64_t aifo = index_tallied(tallies, id, WINDOW_AIFO);
	uint64_t aofi = index_tallied(tallies, id, WINDOW_AOFI);
	uint64_t aofo = index_tallied(tallies, id, WINDOW_AOFO);

	return (struct index_figures){ .begun = of_size(aifi + aifo, size),
				       .from = of_size(aofi + aofo, size),
				       .to = of_size(aifo + aofo, size),
				       .stay = of_size(aofo, size) };
}

static inline struct index_figures cell_figures(const struct cell_state *state, uint32_t id,
						struct cells_cell cell)
{
	bool orphans = cells_of_orphans(&state->index->cells, cell.site);
	struct cell_counts counts;
	struct index_count from, to;
	uint32_t begun, stay;

	if (state->tallies.ended)
		return orphans ? (struct index_figures){ 0 }
			       : tallied_figures(&state->tallies, id, cell.size);
	counts = state->to ? (struct cell_counts){ .to = state->to[id] } : state->counts[id];
	from = counts.from;
	to = counts.to;
	begun = to.begun - from.begun;
	// Steps count orphans as ends, snapshots as beginnings.
	if (orphans)
		return (struct index_figures){ .begun.count = begun - (to.alive - from.alive) };
	stay = state->is_short ? from.alive - counts.stay : counts.stay;
	return (struct index_figures){ .begun = of_size(begun, cell.size),
				       .from = of_size(from.alive, cell.size),
				       .to = of_size(to.alive, cell.size),
				       .stay = of_size(stay, cell.size) };
}

// What is at a place of the order will be asked for soon: begin to fetch it.
static void expect_place(const struct cell_state *state, uint32_t place)
{
	uint32_t id;

	if (place >= state->index->cells.cells_count)
		return;
	id = cells_id_at(state->order, place);
	if (state->tallies.ended) {
		mem_expect(&state->tallies.ended[id]);
		mem_expect(&state->tallies.living[id]);
		return;
	}
	if (state->to) {
		mem_expect(&state->to[id]);
		return;
	}
	// It may lie in two lines.
	mem_expect(&state->counts[id]);
	mem_expect(&state->counts[id].stay);
}

// The cell at a place of the order. *site is one that is not after its site, and moves on to it.
static inline struct cells_cell cell_at(const struct cell_state *state, uint32_t place,
					uint32_t *site)
{
	while (place >= state->order->first[*site + 1])
		++*site;
	return (struct cells_cell){
		.size = cells_size_at(&state->index->cells, state->order, place), .site = *site
	};
}

// Cells in the order of their sites, and not in that of their numbers: those of one site come
// together.
static bool find_cells(void *context, uint32_t first, uint32_t count, struct index_figures *figures,
		       struct err *)
{
	struct cell_state *state = context;
	uint32_t site = state->find_site;

	for (uint32_t place = first; place < first + count; place++) {
		expect_place(state, place + AHEAD);
		*figures++ = cell_figures(state, cells_id_at(state->order, place),
					  cell_at(state, place, &site));
	}
	state->find_site = site;
	return true;
}

static void take_cells(void *context, uint32_t first, uint32_t count,
		       const struct index_figures *figures)
{
	struct cell_state *state = context;
	uint32_t site = state->take_site;

	// Cell 0, at the first place, is none.
	for (uint32_t i = first ? 0 : 1; i < count; i++) {
		struct cells_cell cell = cell_at(state, first + i, &site);

		index_rows_add(&state->rows, cell.site, cell.size, &figures[i]);
	}
	state->take_site = site;
}

// The cells of sites, for a query that looks at no sizes, or takes all that it looks at for one.
static bool find_sites_by_cell(void *context, uint32_t first, uint32_t count,
			       struct index_figures *figures, struct err *)
{
	const struct cell_state *state = context;
	uint32_t end = state->order->first[first + count], site = first;

	memset(figures, 0, count * sizeof *figures);
	for (uint32_t place = state->order->first[first]; place < end; place++) {
		struct cells_cell cell = cell_at(state, place, &site);
		struct index_figures one;

		expect_place(state, place + AHEAD);
		if (!index_has_size(state->query, cell.size))
			continue;
		one = cell_figures(state, cells_id_at(state->order, place), cell);
		index_figures_add(&figures[site - first], &one);
	}
	return true;
}

static void take_sites(void *context, uint32_t first, uint32_t count,
		       const struct index_figures *figures)
{
	struct index_rows *rows = context;
	uint64_t size = size_of_all(rows->query);

	// Site 0 is none.
	for (uint32_t i = first ? 0 : 1; i < count; i++)
		index_rows_add(rows, first + i, size, &figures[i]);
}

// By cells, where sizes matter; else cells are added up by site first, in an order that has those
// of one site together. Where sizes are told by ranges alone, too: then a group is asked for once
// in place of once for each size, and what is of no interest costs the look at its size.
static bool make_rows_by_cell(struct cell_state *state, struct window_result *result,
			      struct err *err)
{
	const struct cells *cells = &state->index->cells;
	bool by_size = state->query->by_size && !state->query->sizes_count;
	struct index_stripes stripes = { find_cells, take_cells, state, state };
	uint32_t keys = by_size ? cells->cells_count : cells->sites_count;
	bool ok;

	if (!by_size)
		stripes = (struct index_stripes){ find_sites_by_cell, take_sites, state,
						  &state->rows };
	index_rows_begin(&state->rows, state->index, state->query, result, cells->sites_count);
	ok = index_stripes_run(&stripes, keys, err);
	index_rows_end(&state->rows);
	return ok;
}

// What all cells of a size add up to, until another size comes to its place.
struct size_sum {
	uint64_t size;
	uint32_t site; // of one of them; 0: there is none
	struct index_figures figures;
};

// Cells as they lie in memory, added up by size before anybody is asked for a group: so no site is
// looked at.
static void make_rows_by_size(struct cell_state *state, struct window_result *result)
{
	enum { SUMS = 1 << 10 };
	const struct cells *cells = &state->index->cells;
	struct size_sum *sums = mem_alloc(SUMS, sizeof *sums), *sum;
	struct index_figures figures;

	ASSERT(state->query->by_size && !state->query->sizes_count);
	ASSERT(!state->tallies.ended && !state->order);
	index_rows_begin(&state->rows, state->index, state->query, result, SUMS);
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		struct cells_cell cell = cells_cell(cells, id);

		figures = cell_figures(state, id, cell);
		if (cells_of_orphans(cells, cell.site)) {
			index_rows_add(&state->rows, cell.site, cell.size, &figures);
			continue;
		}
		sum = &sums[cell.size % SUMS];
		if (sum->site && sum->size == cell.size) {
			index_figures_add(&sum->figures, &figures);
			continue;
		}
		if (sum->site)
			index_rows_add(&state->rows, sum->site, sum->size, &sum->figures);
		*sum = (struct size_sum){ cell.size, cell.site, figures };
	}
	for (sum = sums; sum < sums + SUMS; sum++)
		if (sum->site)
			index_rows_add(&state->rows, sum->site, sum->size, &sum->figures);
	index_rows_end(&state->rows);
	mem_free(sums);
}

static bool ask_cells(struct index *index, const struct window_query *query,
		      struct window_result *result, struct err *err)
{
	uint32_t count = index->cells.cells_count;
	struct cell_state state = { .index = index,
				    .query = query,
				    .is_short = index_is_short(index, query) };
	bool ok;

	if (query->from > WINDOW_START)
		state.counts = index_tables_take(index->tables, count, sizeof *state.counts);
	else
		state.to = index_tables_take(index->tables, count, sizeof *state.to);
	ok = load_all(clear_cells, &state, PARTS_MAX, err) &&
	     load_all(load_cells, &state, PARTS_MAX, err);
	if (ok && is_by_size(index, query))
		make_rows_by_size(&state, result);
	else
		ok = ok && make_rows_by_cell(&state, result, err);
	index_tables_put(index->tables, state.counts);
	index_tables_put(index->tables, state.to);
	return ok;
}

// ---- by site ----

struct site_state {
	struct index *index;
	const struct window_query *query;
	struct index_shifts from, to;
	struct index_sums *from_sums, *to_sums;
	struct index_shift *near_from, *near_to;
	// NULL: the query does not want it, or there was nothing before, or both edges are one. For
	// the last two there are no `from_sums`, either.
	struct heap_amount *stay;
	struct cells_cell soon[STAYS_AHEAD]; // to be counted; their sums are being fetched
	uint64_t stays;                      // so many were put there
};

// A count waits until STAYS_AHEAD others have come, as the sums of its site may be anywhere in
// memory and are being fetched.
static void count_stay(const struct site_state *state, uint64_t number)
{
	const struct cells_cell *cell = &state->soon[number % STAYS_AHEAD];
	struct heap_amount *stay = &state->stay[cell->site];

	stay->count++;
	stay->bytes += cell->size;
}

static bool count_site(void *context, uint32_t cell, uint64_t, uint64_t)
{
	struct site_state *state = context;
	struct cells_cell *entry = &state->soon[state->stays % STAYS_AHEAD];

	if (state->stays >= STAYS_AHEAD)
		count_stay(state, state->stays);
	state->stays++;
	*entry = cells_cell(&state->index->cells, cell);
	mem_expect(&state->stay[entry->site]);
	return true;
}

// What is still in the ring of cells at the end is counted last.
static bool load_stays(struct site_state *state, struct err *err)
{
	const struct window_query *query = state->query;
	const struct index_visitor visitor = { .context = state, .visit = count_site };
	struct before_filter filter = { &visitor, query->from };
	const struct index_visitor filtered = { .context = &filter, .visit = visit_before };
	bool ok;

	memset(state->stay, 0, state->index->cells.sites_count * sizeof *state->stay);
	if (index_is_short(state->index, query))
		ok = index_ending(state->index, query->from, query->to, &filtered, err);
	else
		ok = index_spanning_sums(state->index, query->from, query->to, state->stay,
					 &visitor, err);
	for (uint64_t i = state->stays < STAYS_AHEAD ? 0 : state->stays - STAYS_AHEAD;
	     i < state->stays; i++)
		count_stay(state, i);
	return ok;
}

static bool load_sites(void *context, unsigned part, struct err *err)
{
	struct site_state *state = context;
	const struct window_query *query = state->query;

	if (part == 0)
		return !state->stay || load_stays(state, err);
	if (part == 1 && !state->near_from)
		return true;
	if (part == 1)
		return index_shifts_load(&state->from, state->index, query->from, state->near_from,
					 err);
	return index_shifts_load(&state->to, state->index, query->to, state->near_to, err);
}

static struct heap_amount less_of(struct heap_amount a, struct heap_amount b)
{
	return (struct heap_amount){ a.count < b.count ? a.count : b.count,
				     a.bytes < b.bytes ? a.bytes : b.bytes };
}

// What lived all through the window. Where the query does not want it, as much as can be: then no
// type is below 0.
static struct heap_amount stayed(const struct site_state *state, uint32_t site,
				 const struct index_figures *figures)
{
	if (state->query->edges_only)
		return less_of(figures->from, figures->to);
	if (!state->stay)
		return figures->from; // there is none, or nothing can have ended
	// Of a short window what ended was counted.
	return index_is_short(state->index, state->query)
		       ? window_less(figures->from, state->stay[site])
		       : state->stay[site];
}

// What the window had of each site, by the sums at its two edges and what stayed all through it.
// For example 10 blocks at `from`, 5 that began, 8 at `to`, and 6 that stayed: 4 ended that were
// there before (10 - 6), 2 that began live on (8 - 6), and the other 3 began and ended inside.
static bool find_sites(void *context, uint32_t first, uint32_t count, struct index_figures *figures,
		       struct err *err)
{
	struct site_state *state = context;
	struct bits_sums from[INDEX_STRIPE], to[INDEX_STRIPE];

	ASSERT(count <= INDEX_STRIPE);
	if ((state->from_sums && !index_sums_next(state->from_sums, from, count, err)) ||
	    !index_sums_next(state->to_sums, to, count, err))
		return false;
	if (!state->from_sums) {
		if (state->query->from == state->query->to)
			memcpy(from, to, sizeof from);
		else
			memset(from, 0, sizeof from);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct heap_amount begun = { to[i].begun - from[i].begun,
					     to[i].begun_bytes - from[i].begun_bytes };
		struct heap_amount alive = { from[i].alive, from[i].alive_bytes };
		figures[i] = (struct index_figures){
			.begun = begun,
			.from = alive,
			.to = { to[i].alive, to[i].alive_bytes },
		};
		figures[i].stay = stayed(state, first + i, &figures[i]);
		// Steps count orphans as ends, snapshots as beginnings.
		if (cells_site(&state->index->cells, first + i)->orphans)
			figures[i].begun.count = begun.count - (to[i].alive - from[i].alive);
	}
	return true;
}

// What a site takes of the table of a question by sites.
struct site_room {
	struct index_shift from, to;
	struct heap_amount stay;
};

// By sites: the three tables that it needs are loaded side by side, then the sites are gone through
// in stripes, found by one thread and taken by another. The three are one for who keeps tables: so
// large a one a question by cells needs, too.
static bool ask_sites(struct index *index, const struct window_query *query,
		      struct window_result *result, struct err *err)
{
	uint32_t count = index->cells.sites_count;
	bool before = query->from > WINDOW_START && query->from < query->to, ok;
	void *table = index_tables_take(index->tables, count, sizeof(struct site_room));
	struct site_state state = { .index = index, .query = query, .near_to = table };
	struct index_rows rows;
	const struct index_stripes stripes = { find_sites, take_sites, &state, &rows };

	if (before) {
		state.near_from = state.near_to + count;
		if (!query->edges_only)
			state.stay = (struct heap_amount *)(state.near_from + count);
	}
	ok = load_all(load_sites, &state, 3, err);
	if (ok) {
		if (before)
			state.from_sums = index_sums_new(index, &state.from, err);
		state.to_sums = index_sums_new(index, &state.to, err);
		ok = (state.from_sums || !before) && state.to_sums;
	}
	if (ok) {
		index_rows_begin(&rows, index, query, result, count);
		ok = index_stripes_run(&stripes, count, err);
		index_rows_end(&rows);
	}
	index_sums_free(state.from_sums);
	index_sums_free(state.to_sums);
	index_shifts_fini(&state.from);
	index_shifts_fini(&state.to);
	index_tables_put(index->tables, table);
	return ok;
}

// ---- by lifetime ----

static void *order_cells(void *context)
{
	struct cell_state *state = context;

	state->order = cells_order(&state->index->cells);
	return NULL;
}

static bool ask_lifetimes(struct index *index, const struct window_query *query,
			  struct window_result *result, struct err *err)
{
	struct cell_state state = { .index = index, .query = query };
	struct thread *thread = thread_start(order_cells, &state);
	bool ok = index_tally(index, query, &state.tallies, err);

	thread_join(thread);
	if (!thread && ok)
		order_cells(&state);
	ok = ok && make_rows_by_cell(&state, result, err);
	index_tallies_fini(&state.tallies);
	return ok;
}

// ---- ends with a heap ----

// The first range of steps that end with a heap that is not over before a step.
static size_t range_at(const struct index *index, uint64_t step)
{
	return RISING_UPTO(index->destroys, index->destroys_count, to, step);
}

bool index_destroyed(const struct index *index, uint64_t step)
{
	size_t at = range_at(index, step);

	return at < index->destroys_count && index->destroys[at].from <= step;
}

struct destroyed {
	struct index_groups *groups;
	struct index_rows *rows;
	struct index_clock clock;
	size_t range;
	struct err *err;
	bool failed;
};

static bool is_of_lifetime(struct destroyed *destroyed, uint64_t begin, uint64_t end)
{
	const struct window_query *query = destroyed->groups->query;
	struct index *index = destroyed->groups->index;
	uint64_t begin_ns, end_ns;

	if (!index_clock_time(&destroyed->clock, index, begin, &begin_ns, destroyed->err) ||
	    !index_clock_time(&destroyed->clock, index, end, &end_ns, destroyed->err)) {
		destroyed->failed = true;
		return false;
	}
	return window_has_lifetime(query, end_ns - begin_ns);
}

// Ends come in order, and so do the ranges of steps in which a heap was destroyed.
static bool count_destroyed(void *context, uint32_t cell, uint64_t begin, uint64_t end)
{
	struct destroyed *destroyed = context;
	const struct index *index = destroyed->groups->index;
	uint32_t group;

	while (destroyed->range < index->destroys_count &&
	       index->destroys[destroyed->range].to <= end)
		destroyed->range++;
	if (destroyed->range == index->destroys_count)
		return false;
	if (index->destroys[destroyed->range].from > end)
		return true;
	group = index_group(destroyed->groups, cell);
	if (group == WINDOW_SKIP || (window_by_lifetime(destroyed->groups->query) &&
				     !is_of_lifetime(destroyed, begin, end)))
		return !destroyed->failed;
	index_rows_destroyed(destroyed->rows, group, cells_cell(&index->cells, cell).size);
	return true;
}

// Only blocks that have such steps, and each of them once.
static bool ask_destroyed(struct index *index, const struct window_query *query,
			  struct index_groups *groups, struct index_rows *rows, struct err *err)
{
	struct destroyed destroyed = { .groups = groups, .rows = rows, .err = err };
	const struct index_visitor visitor = { .context = &destroyed, .visit = count_destroyed };
	unsigned log2 = index->shape.block_log2;
	uint64_t first = query->from >> log2;
	uint8_t *marks = mem_alloc((size_t)((query->to >> log2) - first) + 1, 1);
	bool ok;

	destroyed.range = range_at(index, query->from);
	for (size_t i = destroyed.range;
	     i < index->destroys_count && index->destroys[i].from < query->to; i++) {
		uint64_t from = index->destroys[i].from, to = index->destroys[i].to;

		from = from > query->from ? from : query->from;
		to = to < query->to ? to : query->to;
		for (; from < to; from = ((from >> log2) + 1) << log2)
			marks[(from >> log2) - first] = 1;
	}
	ok = index_ending_in(index, query->from, query->to, marks, &visitor, err) &&
	     !destroyed.failed;
	index_clock_fini(&destroyed.clock);
	mem_free(marks);
	return ok;
}

// With lifetimes by looking at each end; else by sums, of cells if sizes matter and of sites if
// not. What was freed with its heap is counted besides. Before the first step there is nothing.
bool index_ask(struct index *index, const struct window_query *query, struct window_result *result,
	       struct err *err)
{
	struct index_groups groups;
	struct index_rows rows;
	bool ok;

	ASSERT(query->from <= query->to);
	if (query->to <= WINDOW_START)
		return true;
	if (window_by_lifetime(query))
		ok = ask_lifetimes(index, query, result, err);
	else
		ok = query->by_size ? ask_cells(index, query, result, err)
				    : ask_sites(index, query, result, err);
	if (!ok || index->destroys_count == 0)
		return ok;
	index_groups_init(&groups, index, query);
	index_rows_begin(&rows, index, query, result, 0);
	ok = ask_destroyed(index, query, &groups, &rows, err);
	index_groups_fini(&groups);
	return ok;
}
