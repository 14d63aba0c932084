// Rows of single allocations: those that will be shown are kept, whatever there is of them.
//
// They are collected in a list. Now and then all but the first rows_max of each parent go, and from
// then on what is behind these is not taken at all. The first of all are the first of the first of
// parts, so that answers are the same with any memory.
//
// What began in the window and was not ended comes in the order of its beginnings, so that the
// first rows_max of a parent are soon known where all are of one size. Most of a long window both
// began and ended in it. Such allocations weigh nothing, come after those that have an impact, and
// among each other in the order of their beginnings. So they are gone through last, from the
// window's beginning on, in parts that grow, until the first rows_max of each parent are known. For
// example, of a hundred million allocations of 32 bytes ten are shown: if ten of them are still
// there at the end, no other is looked at; if three are, the first seven of the others are found in
// the first part. What lived before the window is gone through between the two, for parents of
// which what began in it does not fill the rows. What was not looked at is counted: it is the
// parent's sums less what was.
#include "report/table/table.h"

#include "base/mem.h"

#include <inttypes.h>

struct table_single {
	struct window_allocation allocation;
	uint32_t parent, group;
	enum window_type type;
};

struct table_singles {
	struct table_single *list;
	size_t count, capacity;
	size_t prune_at; // so many are too many to keep without a look
	uint32_t *bars;  // by parent: place in the list, + 1, of the last one that would be shown
	size_t bars_count;
};

// Of fewer in the list none go.
enum { PRUNE_MIN = 1 << 12 };

static bool by_detail(const struct table_options *options)
{
	return options->sorted && table_column_details(options->sort);
}

// A row for comparisons alone: it has no depth, no value and no place.
static struct table_row as_row(const struct table *table, const struct table_single *single)
{
	struct table_row row = { .parent = single->parent };

	row.sums.type[single->type] = (struct heap_amount){ 1, single->allocation.cell.size };
	if (by_detail(table->options))
		table_tell_single(&single->allocation, &row);
	return row;
}

// Rows are made only where sizes or types differ: of a hundred million blocks most are of one size.
static int compare_figures(const struct table *table, const struct table_single *left,
			   const struct table_single *right)
{
	struct table_row a, b;

	// Most of a parent's are alike.
	if (left->type == right->type &&
	    left->allocation.cell.size == right->allocation.cell.size && !by_detail(table->options))
		return 0;
	a = as_row(table, left);
	b = as_row(table, right);
	return table_compare(table->options, &a, &b);
}

// Of equals the one that began earlier comes first.
static int compare_shown(const struct table *table, const struct table_single *left,
			 const struct table_single *right)
{
	int order = compare_figures(table, left, right);

	if (order != 0)
		return order;
	return left->allocation.begin < right->allocation.begin
		       ? -1
		       : left->allocation.begin > right->allocation.begin;
}

static int compare_singles(const void *a, const void *b, void *context)
{
	const struct table_single *left = a, *right = b;

	if (left->parent != right->parent)
		return left->parent < right->parent ? -1 : 1;
	return compare_shown(context, left, right);
}

static void drop(struct table *table, const struct table_single *single)
{
	struct window_row sums = { 0 };

	sums.type[single->type] = (struct heap_amount){ 1, single->allocation.cell.size };
	table_drop(table, single->parent, 1, &sums);
}

// Leave the first of each parent. False: that does not make room.
// `bars` are set for parents that have rows_max: a single that comes after the last of these is
// never shown, so it need not be put into the list.
static bool prune(struct table *table, struct table_singles *singles, uint64_t most)
{
	uint64_t rows_max = table->options->rows_max, rank = 0;
	size_t kept = 0;

	singles->prune_at = SIZE_MAX;
	if (rows_max == 0 || table->options->sort == TABLE_NAME)
		return false;
	mem_sort(singles->list, singles->count, sizeof *singles->list, compare_singles, table);
	mem_free(singles->bars);
	singles->bars = mem_alloc(table->rows_count, sizeof *singles->bars);
	singles->bars_count = table->rows_count;
	for (size_t i = 0; i < singles->count; i++) {
		struct table_single single = singles->list[i];

		rank = kept > 0 && singles->list[kept - 1].parent == single.parent ? rank + 1 : 1;
		if (rank > rows_max) {
			drop(table, &single);
			continue;
		}
		ASSERT(kept <= i);
		singles->list[kept++] = single;
		if (rank == rows_max)
			singles->bars[single.parent] = (uint32_t)kept;
	}
	singles->count = kept;
	singles->prune_at = 2 * kept > PRUNE_MIN ? 2 * kept : PRUNE_MIN;
	return kept <= most / 2;
}

// False: those that would be shown do not fit.
static bool add(struct table *table, const struct window_allocation *allocation, uint32_t parent,
		uint32_t group, enum window_type type, uint64_t most)
{
	struct table_singles *singles = table->singles;
	struct table_single single = { *allocation, parent, group, type };
	uint32_t bar = parent < singles->bars_count ? singles->bars[parent] : 0;
	if (table->options->rows_max > 0 && allocation->cell.size < table->options->bytes_min) {
		drop(table, &single);
		return true;
	}
	if (bar && compare_shown(table, &single, &singles->list[bar - 1]) > 0) {
		drop(table, &single);
		return true;
	}
	if (singles->count >= singles->prune_at)
		prune(table, singles, most);
	if (singles->count >= most && !prune(table, singles, most))
		return false;
	*MEM_ADD(singles->list, singles->count, singles->capacity) = single;
	return true;
}

// ---- going through the window ----

struct walk {
	struct table *table;
	const struct table_phase *phase;
	struct window_query query; // of all of the window
	uint64_t most;
	bool too_many;
	bool parted;              // what is below counts
	unsigned types;           // that are gone through now: set of enum window_type, as bits
	uint64_t since;           // WINDOW_AIFI: that began from there on
	struct window_row *taken; // by parent: of those
	uint8_t *settled;         // by parent: types of which no more are looked at, as bits
	uint64_t met, settle_at;  // how often it was asked whether all are settled
};

// False ends the walk: there is no more room.
static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct walk *walk = context;
	struct table *table = walk->table;
	enum window_type type = table_type_of(&walk->query, allocation);
	unsigned types = table->asked->selection.query.types;
	uint32_t parent;

	if (walk->parted && (!(walk->types >> type & 1) ||
			     (type == WINDOW_AIFI && allocation->begin < walk->since)))
		return true;
	if (types && !(types >> type & 1))
		return true;
	parent = table_parent_of(table, allocation->group, walk->phase, type);
	if (parent == TABLE_NONE)
		return true;
	if (walk->parted) {
		if (walk->settled[parent] >> type & 1)
			return true;
		window_add(&walk->taken[parent].type[type],
			   (struct heap_amount){ 1, allocation->cell.size });
	}
	walk->too_many = !add(table, allocation, parent, allocation->group, type, walk->most);
	return !walk->too_many;
}

// The query's own grouping, without groups of which no more is needed: the engine then passes over
// them.
static uint32_t group_of_unsettled(void *context, const struct window_cell *cell)
{
	const struct walk *walk = context;
	uint32_t group = walk->query.group(walk->query.context, cell), parent;
	bool needed = false;

	if (group == WINDOW_SKIP)
		return group;
	for (enum window_type type = 0; type < WINDOW_TYPES && !needed; type++) {
		if (!(walk->types >> type & 1))
			continue;
		parent = table_parent_of(walk->table, group, NULL, type);
		needed = parent != TABLE_NONE && !(walk->settled[parent] >> type & 1);
	}
	return needed ? group : WINDOW_SKIP;
}

static bool is_parent(const struct table *table, const struct table_row *row)
{
	return row->depth + 1 == table->options->keys.count && !row->orphans;
}

// Whether what may still come of a parent and a type, all from a step on, would not be shown.
static bool is_behind(const struct walk *walk, uint32_t parent, enum window_type type,
		      uint64_t step)
{
	const struct table *table = walk->table;
	const struct table_singles *singles = table->singles;
	uint32_t bar = parent < singles->bars_count ? singles->bars[parent] : 0;
	struct heap_amount all = table->rows[parent].sums.type[type];
	struct table_single best = { .type = type };

	ASSERT(all.count > 0);
	best.allocation.begin = step;
	best.allocation.cell.size = keys_has(&table->options->keys, KEYS_SIZE)
					    ? all.bytes / all.count // they are alike
					    : INT64_MAX;
	return bar && compare_shown(table, &best, &singles->list[bar - 1]) > 0;
}

// Returns whether any parent is not settled.
// `step`: what comes from now on began there or later.
static bool settle(struct walk *walk, uint64_t step)
{
	struct table *table = walk->table;
	bool any = false;

	prune(table, table->singles, UINT64_MAX);
	for (uint32_t i = 0; i < table->rows_count; i++) {
		walk->settled[i] = 0;
		for (enum window_type type = 0; type < WINDOW_TYPES; type++) {
			uint64_t all = table->rows[i].sums.type[type].count;

			if (!(walk->types >> type & 1) || !is_parent(table, &table->rows[i]) ||
			    all <= walk->taken[i].type[type].count ||
			    is_behind(walk, i, type, step))
				walk->settled[i] |= (uint8_t)(1u << type);
		}
		any |= (walk->types & ~(unsigned)walk->settled[i]) != 0;
	}
	return any;
}

static void begin_settling(struct walk *walk, unsigned types)
{
	walk->types = types;
	walk->taken = mem_alloc(walk->table->rows_count, sizeof *walk->taken);
	walk->settled = mem_alloc(walk->table->rows_count, sizeof *walk->settled);
}

// What was not looked at is counted by the difference of sums.
static void end_settling(const struct walk *walk)
{
	struct table *table = walk->table;

	for (uint32_t i = 0; i < table->rows_count; i++) {
		struct window_row left = { 0 };
		uint64_t count = 0;

		if (!is_parent(table, &table->rows[i]))
			continue;
		for (enum window_type type = 0; type < WINDOW_TYPES; type++) {
			struct heap_amount all = table->rows[i].sums.type[type];
			struct heap_amount taken = walk->taken[i].type[type];

			if (!(walk->types >> type & 1) || all.count <= taken.count)
				continue;
			left.type[type] = window_less(all, taken);
			count += left.type[type].count;
		}
		if (count > 0)
			table_drop(table, i, count, &left);
	}
	MEM_FREE(walk->taken, walk->settled);
}

// Asked by the engine. To find out takes as long as there are rows, so it is done the less often
// the longer it goes on.
static bool is_settled(void *context, uint64_t step)
{
	struct walk *walk = context;

	if (walk->met++ < walk->settle_at)
		return false;
	walk->settle_at = walk->met + walk->met / 4;
	return !settle(walk, step);
}

// Some of what lives at one of the window's edges, all of which began at a step or later.
static bool walk_edge(struct walk *walk, unsigned types, uint64_t step, struct err *err)
{
	struct window_query query = walk->query;
	bool ok = true;

	query.walk_types = types;
	query.group = group_of_unsettled;
	query.context = walk;
	query.enough = is_settled;
	begin_settling(walk, types);
	if (settle(walk, step))
		ok = window_walk(walk->table->asked->window, &query, take_allocation, walk, err);
	end_settling(walk);
	return ok;
}

// What began in the window comes first: it weighs more than what was there before, which most
// parents then need not be asked for.
static bool walk_edges(struct walk *walk, struct err *err)
{
	return walk_edge(walk, 1u << WINDOW_AIFO, walk->query.from, err) &&
	       (walk->too_many || walk_edge(walk, 1u << WINDOW_AOFI | 1u << WINDOW_AOFO, 0, err));
}

// Of one size, those of a parent are shown in the order of their beginnings. Of the first ones
// some may live at the window's end, and are not transient: the parent's row says how many there
// are, if all types are in one row.
static uint64_t first_of(void *context, uint32_t group)
{
	const struct walk *walk = context;
	const struct table *table = walk->table;
	uint32_t parent = table_parent_of(table, group, walk->phase, WINDOW_AIFI);

	ASSERT(table->options->rows_max > 0);
	if (parent == TABLE_NONE ||
	    table_parent_of(table, group, walk->phase, WINDOW_AIFO) != parent)
		return UINT64_MAX;
	return table->options->rows_max + table->rows[parent].sums.type[WINDOW_AIFO].count;
}

// In parts of the window that grow.
// The first part is a 64th of the window, each next one eight times as long: 1/64, 8/64, the rest.
// What is asked for more than once is what began in one part and ended in a later one, so `since`
// leaves those out that an earlier part has had.
static bool walk_transient(struct walk *walk, struct err *err)
{
	enum { FIRST_PART = 64, GROWTH = 8 };
	struct table *table = walk->table;
	uint64_t steps = window_facts(table->asked->window)->steps_end;
	uint64_t end = walk->query.to < steps ? walk->query.to : steps;
	uint64_t reach = (end - walk->query.from) / FIRST_PART + 1;
	struct window_query part = walk->query;
	bool ok = true;

	ASSERT(walk->parted);
	part.group = group_of_unsettled;
	part.context = walk;
	part.first = keys_has(&table->options->keys, KEYS_SIZE) ? first_of : NULL;
	begin_settling(walk, 1u << WINDOW_AIFI);
	while (ok && !walk->too_many && part.from < end && settle(walk, part.from)) {
		part.to = end - part.from > reach ? part.from + reach : end;
		walk->since = part.from;
		ok = window_walk(table->asked->window, &part, take_allocation, walk, err);
		part.from = part.to;
		reach *= GROWTH;
	}
	end_settling(walk);
	return ok;
}

// Whether the order of what is shown says what need not be looked at, and sums tell of that.
static bool can_be_parted(const struct table *table, const struct table_phase *phase)
{
	const struct table_options *options = table->options;

	return !phase && !table->estimated && options->rows_max > 0 &&
	       options->sort != TABLE_NAME && !by_detail(options);
}

// Each allocation may be in the list and in a row, and has some words of the engine's: `each`
// bytes.
bool table_singles_find(struct table *table, const struct table_phase *phase, struct err *err)
{
	size_t each = 2 * sizeof(struct window_allocation) + sizeof(struct table_row) + 32;
	struct walk walk = {
		.table = table,
		.phase = phase,
		.query = table_query(table, table->options->keys.count, phase),
		.most = table_memory(table) / 2 / each,
		.parted = can_be_parted(table, phase),
	};
	bool ok;

	if (!table->singles) {
		table->singles = mem_alloc(1, sizeof *table->singles);
		table->singles->prune_at = PRUNE_MIN;
	}
	if (walk.parted)
		ok = walk_edges(&walk, err) && (walk.too_many || walk_transient(&walk, err));
	else
		ok = window_walk(table->asked->window, &walk.query, take_allocation, &walk, err);
	if (!ok)
		return false;
	return !walk.too_many ||
	       err_set(err, ERR_LIMIT,
		       "more than %" PRIu64 " single allocations do not fit in half of the memory: "
		       "show fewer (-n), choose fewer with filters, or raise --memory",
		       walk.most);
}

// Frees the list. Allocations are in the order of the list, which their rows' values are places in.
void table_singles_insert(struct table *table)
{
	struct table_singles *singles = table->singles;

	table->allocations = mem_alloc(singles->count, sizeof *table->allocations);
	for (size_t i = 0; i < singles->count; i++) {
		const struct table_single *single = &singles->list[i];
		struct table_row row = as_row(table, single);

		table->allocations[i] = single->allocation;
		row.depth = table->rows[single->parent].depth + 1;
		row.value = i;
		row.group = single->group;
		table_add_row(table, &row);
	}
	table_singles_free(singles);
	table->singles = NULL;
}

void table_singles_free(struct table_singles *singles)
{
	if (!singles)
		return;
	MEM_FREE(singles->list, singles->bars, singles);
}
