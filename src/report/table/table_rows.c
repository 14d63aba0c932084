// The rows of a table as they are found: a level at a time, each below a row of the level before.
//
// Where only the first rows_max of each parent will be shown and their figures are enough to tell
// which these are, the others go as soon as there are many of them, and only their number and sums
// stay. What would be below them is not taken at all.
//
// For example -n 10 with a million stacks: when 8,192 rows wait, they are sorted and the first ten
// of each parent stay; the others are 8,182 more in the parent's dropped rows, and their bytes in
// its dropped sums. So there are never many more rows than are waiting. From then on a row that
// comes after the tenth is dropped at once, so of a million nearly all are compared with one other.
// Sorted by a column that needs details, or by name, nothing can be dropped before all is known.
#include "report/table/table.h"

#include "base/mem.h"

// Rows of a level that are not chosen from yet; what one that is kept takes, with its details, its
// names and what the engine has of it.
enum { ROWS_WAITING = 1 << 13, ROW_BYTES = 480 };

// ---- rows by their keys ----

static uint64_t hash_row(const struct table_row *row)
{
	const uint64_t numbers[] = { row->parent, row->value, row->orphans };

	return index_set_hash(numbers, 3);
}

static bool is_row(const void *context, uint32_t position, const void *key)
{
	const struct table *table = context;
	const struct table_row *row = &table->rows[position], *wanted = key;

	ASSERT(position < table->rows_count);
	return row->parent == wanted->parent && row->value == wanted->value &&
	       row->orphans == wanted->orphans;
}

uint32_t table_find_child(const struct table *table, uint32_t parent, uint64_t value, bool orphans)
{
	const struct table_row row = { .parent = parent, .value = value, .orphans = orphans };

	ASSERT(parent < table->rows_count);
	return index_set_find(&table->children, hash_row(&row), is_row, table, &row);
}

// ---- which are kept ----

// Whether a row's own figures say that it will not be shown.
static bool chooses(const struct table_options *options)
{
	return options->rows_max > 0 && options->sort != TABLE_NAME &&
	       !(options->sorted && table_column_details(options->sort));
}

// `sums` are added to those of the parent's dropped rows.
void table_drop(struct table *table, uint32_t parent, uint64_t rows, const struct window_row *sums)
{
	ASSERT(parent != TABLE_NONE);
	MEM_REACH(table->dropped, table->dropped_capacity, parent)->rows += rows;
	window_add_row(&table->dropped[parent].sums, sums);
}

uint64_t table_dropped(const struct table *table, const struct table_row *row,
		       struct window_row *sums)
{
	size_t index = (size_t)(row - table->rows);

	if (index >= table->dropped_capacity)
		return 0;
	if (sums)
		window_add_row(sums, &table->dropped[index].sums);
	return table->dropped[index].rows;
}

// By parent first: each parent's rows are then side by side.
static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct table_row *left = a, *right = b;

	if (left->parent != right->parent)
		return left->parent < right->parent ? -1 : 1;
	return table_compare_shown(context, left, right);
}

// Whether so many of a row's parent come before it already. `bars` says which of those is the last
// that would be shown; what comes after it need not be sorted to know that it is not.
static bool is_behind(const struct table *table, const struct table_row *row)
{
	size_t bar = row->parent < table->bars_count ? table->bars[row->parent] : 0;

	ASSERT(bar == 0 || bar <= table->rows_count);
	return bar && table_compare_shown(table, row, &table->rows[bar - 1]) > 0;
}

// Of the present level leave the first rows_max of each parent, and frees of nothing known.
// `choose_at` doubles with what was kept, so that many parents do not make it sort again and again.
static void choose(struct table *table)
{
	struct table_row *rows = table->rows + table->level_begin;
	size_t count = table->rows_count - table->level_begin, kept = 0;
	uint64_t rank = 0;

	if (count == 0)
		return;
	mem_sort(rows, count, sizeof *rows, compare_siblings, table);
	if (table->bars_count == 0)
		table->bars = mem_alloc(table->level_begin + 1, sizeof *table->bars);
	table->bars_count = table->level_begin;
	for (size_t i = 0; i < count; i++) {
		rank = kept > 0 && rows[kept - 1].parent == rows[i].parent ? rank + 1 : 1;
		if (rank > table->options->rows_max && !rows[i].orphans)
			table_drop(table, rows[i].parent, 1, &rows[i].sums);
		else
			rows[kept++] = rows[i];
		if (rank == table->options->rows_max && !rows[i].orphans)
			table->bars[rows[kept - 1].parent] = table->level_begin + kept;
	}
	ASSERT(kept <= count);
	table->rows_count = table->level_begin + kept;
	table->choose_at = table->level_begin + kept * 2;
}

// ---- a level ----

// Impacts and types are few, and further windows may have some that this one has not.
static bool is_of_types(const struct table *table, size_t depth)
{
	enum keys_key key = table->options->keys.list[depth - 1];

	ASSERT(depth > 0 && depth <= table->options->keys.count);
	return key == KEYS_IMPACT || key == KEYS_TYPE;
}

void table_begin_level(struct table *table, size_t depth)
{
	ASSERT(!table->choosing);
	table->level_begin = table->rows_count;
	table->choose_at = 0;
	MEM_FREE(table->bars);
	table->bars = NULL;
	table->bars_count = 0;
	table->choosing = depth > 0 && chooses(table->options) && !is_of_types(table, depth);
}

// A row below the least size is dropped at once, with its sums kept for "N more"; of the others the
// least are dropped when too many wait.
void table_add_row(struct table *table, const struct table_row *row)
{
	const struct table_options *options = table->options;

	if (table->choosing) {
		if (!row->orphans && (window_present(&row->sums).bytes < options->bytes_min ||
				      is_behind(table, row))) {
			table_drop(table, row->parent, 1, &row->sums);
			return;
		}
		if (table->rows_count - table->level_begin >= ROWS_WAITING &&
		    table->rows_count >= table->choose_at)
			choose(table);
	}
	ASSERT(table->rows_count < TABLE_NONE);
	*MEM_ADD(table->rows, table->rows_count, table->rows_capacity) = *row;
	if (table->spill)
		table_spill_rows(table, false);
}

// Where rows are chosen from as they come, any number fits.
bool table_make_room(struct table *table, size_t depth, uint64_t rows, struct err *err)
{
	const struct table_options *options = table->options;
	uint64_t memory = table_memory(table), need;

	// A third is for what the engine has of the trace.
	need = (table->rows_count + rows) * ROW_BYTES / 2 * 3;
	if (chooses(options) || need <= memory || table->spill)
		return true;
	if (depth == options->keys.count)
		return table_spill_begin(table, err);
	return err_set(
		err, ERR_LIMIT,
		"%s rows above those of the last key do not fit in two thirds of the memory: %s, "
		"choose fewer with filters, or raise --memory to %s",
		STR_COUNT(table->rows_count + rows),
		options->rows_max ? "sort by another column" : "show fewer (-n)", STR_BYTES(need));
}

static void index_row(struct table *table, size_t i)
{
	index_set_put(&table->children, hash_row(&table->rows[i]), is_row, table, &table->rows[i],
		      (uint32_t)i);
}

// Phases are windows of their own: what is persistent in one of them may be impacting in the
// whole. So each row of the level before gets all that it might have; what stays empty is not laid
// out.
static void add_types(struct table *table, size_t depth)
{
	uint64_t types = table->options->keys.list[depth - 1] == KEYS_TYPE
				 ? WINDOW_TYPES
				 : TABLE_PERSISTENT + UINT64_C(1);
	size_t count = table->level_begin;

	ASSERT(depth > 0 && depth <= table->options->keys.count);
	for (uint32_t parent = 0; parent < count; parent++) {
		struct table_row row = { .parent = parent, .depth = (uint32_t)depth };

		if (table->rows[parent].depth + 1 != depth || table->rows[parent].orphans)
			continue;
		row.group = WINDOW_SKIP;
		for (row.value = 0; row.value < types; row.value++) {
			if (table_find_child(table, parent, row.value, false) != TABLE_NONE)
				continue;
			table_add_row(table, &row);
			index_row(table, table->rows_count - 1);
		}
	}
}

// Rows of the last level are not looked up again, and need no places in the set.
void table_end_level(struct table *table, size_t depth)
{
	const struct keys *keys = &table->options->keys;
	bool phased = false;

	ASSERT(depth <= keys->count);
	if (table->choosing)
		choose(table);
	table->choosing = false;
	if (table->spill)
		table_spill_rows(table, true);
	if (depth == keys->count)
		return;
	for (size_t i = table->level_begin; i < table->rows_count; i++)
		index_row(table, i);
	for (size_t i = depth; i < keys->count; i++)
		phased |= keys->list[i] == KEYS_MARK;
	if (phased && is_of_types(table, depth))
		add_types(table, depth);
}
