#include "engine/index_scan.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>

// ---- what exits take away ----

// The level of a group drops at the end of a process.
struct drop {
	uint64_t step, time_ns;
	struct heap_amount amount;
	uint32_t group;
	bool last;
};

struct drops {
	struct drop *list;
	size_t count, capacity;
};

static int compare_drops(const void *a, const void *b)
{
	const struct drop *x = a, *y = b;

	return x->step != y->step     ? (x->step < y->step ? -1 : 1)
	       : x->group != y->group ? (x->group < y->group ? -1 : 1)
				      : 0;
}

static bool any_exit(const struct index *index, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step >= from && index->exits[i].step < to)
			return true;
	return false;
}

static void add_drop(struct drops *drops, struct map *known, const struct index_scan *scan,
		     uint32_t cell, uint64_t count)
{
	const struct index *index = scan->index;
	const struct cells_cell *entry = cells_cell(&index->cells, cell);
	const struct index_exit *exit =
		&index->exits[cells_site(&index->cells, entry->site)->process];
	uint32_t group = scan->of_cell[cell];
	uint64_t fresh = drops->count, *at = &fresh;
	bool added = true;

	if (group == WINDOW_SKIP)
		return;
	if (!scan->single_exits) {
		at = map_put(known,
			     (uint64_t)cells_site(&index->cells, entry->site)->process << 32 |
				     group,
			     &added);
		if (added)
			*at = drops->count;
	}
	if (added) {
		drops->list = mem_grow(drops->list, &drops->capacity, drops->count + 1,
				       sizeof *drops->list);
		drops->list[drops->count++] = (struct drop){ .step = exit->step,
							     .time_ns = exit->time_ns,
							     .group = group };
	}
	drops->list[*at].amount.count += count;
	drops->list[*at].amount.bytes += count * entry->size;
}

// What is left at the very end is what processes had when they ended.
static bool find_drops(const struct index_scan *scan, struct drops *drops, struct err *err)
{
	struct index *index = scan->index;
	struct index_count *counts;
	struct map known = { 0 };
	bool ok;

	*drops = (struct drops){ 0 };
	if (!any_exit(index, scan->from, scan->to))
		return true;
	counts = mem_alloc(index->cells.cells_count, sizeof *counts);
	ok = index_counts(index, index->steps_end, counts, err);
	for (uint32_t id = 1; ok && id < index->cells.cells_count; id++) {
		const struct cells_site *site =
			cells_site(&index->cells, cells_cell(&index->cells, id)->site);

		if (counts[id].alive && !site->orphans && site->process < index->exits_count &&
		    index->exits[site->process].step >= scan->from &&
		    index->exits[site->process].step < scan->to)
			add_drop(drops, &known, scan, id, counts[id].alive);
	}
	map_fini(&known);
	mem_free(counts);
	if (drops->count)
		qsort(drops->list, drops->count, sizeof *drops->list, compare_drops);
	for (size_t i = 0; i < drops->count; i++)
		drops->list[i].last = i + 1 == drops->count ||
				      drops->list[i + 1].step != drops->list[i].step;
	return ok;
}

static bool tell_drop(const struct index_scan *scan, const struct drop *drop)
{
	const struct index_scan_step told = {
		.step = drop->step,
		.time_ns = drop->time_ns,
		.amount = drop->amount,
		.group = drop->group,
		.exit = true,
		.last = drop->last,
	};

	return scan->visit(scan->context, &told);
}

// ---- steps ----

// Tell of the steps of a block, and of drops that lie between them.
static bool tell_block(const struct index_scan *scan, const struct index_block *block,
		       const struct drops *drops, size_t *drop)
{
	const struct cells *cells = &scan->index->cells;
	uint32_t i = scan->from > block->first ? (uint32_t)(scan->from - block->first) : 0;
	uint32_t end = scan->to - block->first < block->count ? (uint32_t)(scan->to - block->first)
							      : block->count;
	const struct index_run *run = block->runs, *runs_end = run + block->runs_count;
	struct index_scan_step told = { .last = true };
	bool more = true;

	for (; i < end && more; i++) {
		uint32_t cell = block->ops[i] >> 1;

		while (run + 1 < runs_end && run[1].at <= i)
			run++;
		while (more && *drop < drops->count && drops->list[*drop].step <= block->first + i)
			more = tell_drop(scan, &drops->list[(*drop)++]);
		told.group = scan->of_cell[cell];
		if (told.group == WINDOW_SKIP || !more)
			continue;
		told.step = block->first + i;
		told.up = !(block->ops[i] & 1);
		told.begin = scan->lives && !told.up ? block->begins[i] : 0;
		told.time_ns = run->value;
		told.amount = (struct heap_amount){ 1, cells_cell(cells, cell)->size };
		more = scan->visit(scan->context, &told);
	}
	return more;
}

void index_scan_prepare(struct index_scan *scan)
{
	const struct cells *cells = &scan->index->cells;

	scan->of_cell = mem_resize(NULL, cells->cells_count, sizeof *scan->of_cell);
	scan->of_cell[0] = WINDOW_SKIP;
	for (uint32_t id = 1; id < cells->cells_count; id++) {
		uint32_t group = index_group(scan->groups, id);

		if (group >= scan->groups_count || (scan->wanted && !scan->wanted[group]) ||
		    cells_site(cells, cells_cell(cells, id)->site)->orphans)
			group = WINDOW_SKIP;
		scan->of_cell[id] = group;
	}
}

void index_scan_fini(struct index_scan *scan)
{
	mem_free(scan->of_cell);
	scan->of_cell = NULL;
}

static bool load_block(struct index_scan *scan, uint64_t number, struct index_block *block,
		       struct err *err)
{
	if (scan->kept && scan->kept_number == number + 1)
		return true;
	scan->kept_number = 0;
	if (!index_block_load(scan->index, number, INDEX_TIMES | (scan->lives ? INDEX_LIVES : 0),
			      block, err))
		return false;
	scan->kept_number = number + 1;
	return true;
}

bool index_scan(struct index_scan *scan, struct err *err)
{
	struct index *index = scan->index;
	struct index_block own = { 0 }, *block = scan->kept ? scan->kept : &own;
	struct drops drops;
	size_t drop = 0;
	bool prepared = scan->of_cell != NULL, more = true, ok;

	if (!prepared)
		index_scan_prepare(scan);
	ok = find_drops(scan, &drops, err);
	for (uint64_t number = scan->from >> index->shape.block_log2;
	     ok && more && number << index->shape.block_log2 < scan->to; number++) {
		ok = load_block(scan, number, block, err);
		if (ok)
			more = tell_block(scan, block, &drops, &drop);
	}
	if (!prepared)
		index_scan_fini(scan);
	mem_free(drops.list);
	index_block_fini(&own);
	return ok;
}

struct heap_amount *index_scan_levels(struct index *index, const struct window_query *query,
				      uint64_t edge, size_t groups_count, struct err *err)
{
	struct heap_amount *levels = mem_alloc(groups_count + 1, sizeof *levels);
	struct window_query at = *query;
	struct window_result result = { 0 };
	bool ok;

	at.from = at.to = edge;
	at.exit_frees = true;
	ok = index_ask(index, &at, &result, err);
	for (size_t i = 0; i < groups_count && i < result.rows_count; i++)
		levels[i] = result.rows[i].type[WINDOW_AOFO];
	window_result_fini(&result);
	if (ok)
		return levels;
	mem_free(levels);
	return NULL;
}
