// Rows of single allocations: those that will be shown are kept, whatever there is of them.
//
// They are collected in a list. Once it takes as much memory as it may, all but the first rows_max
// of each parent go, and from then on what is behind these is not taken at all. The first of all
// are the first of the first of parts, so that answers are the same with any memory.
#include "report/table/table.h"

#include "base/mem.h"

#include <string.h>

struct table_single {
	struct window_allocation allocation;
	uint32_t parent, group;
	enum window_type type;
};

struct table_singles {
	struct table_single *list;
	size_t count, capacity;
	uint32_t *bars; // by parent: place in the list, + 1, of the last one that would be shown
	size_t bars_count;
};

static struct table_row as_row(const struct table *table, const struct table_single *single)
{
	struct table_row row = { .parent = single->parent };

	row.sums.type[single->type] = (struct heap_amount){ 1, single->allocation.cell.size };
	if (table->options->sorted && table_column_details(table->options->sort))
		table_tell_single(&single->allocation, &row);
	return row;
}

static int compare_shown(const struct table *table, const struct table_single *left,
			 const struct table_single *right)
{
	struct table_row a = as_row(table, left), b = as_row(table, right);
	int order = table_compare(table->options, &a, &b);

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
	table_drop(table, single->parent, &sums);
}

// Leave the first of each parent. False: that does not make room.
static bool prune(struct table *table, struct table_singles *singles, uint64_t most)
{
	uint64_t rows_max = table->options->rows_max, rank = 0;
	size_t kept = 0;

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
		singles->list[kept++] = single;
		if (rank == rows_max)
			singles->bars[single.parent] = (uint32_t)kept;
	}
	singles->count = kept;
	return kept <= most / 2;
}

bool table_single_add(struct table *table, const struct window_allocation *allocation,
		      uint32_t parent, uint32_t group, enum window_type type, uint64_t most)
{
	struct table_singles *singles = table->singles;
	struct table_single single = { *allocation, parent, group, type };
	uint32_t bar;

	if (!singles)
		singles = table->singles = mem_alloc(1, sizeof *singles);
	bar = parent < singles->bars_count ? singles->bars[parent] : 0;
	if (table->options->rows_max > 0 && allocation->cell.size < table->options->bytes_min) {
		drop(table, &single);
		return true;
	}
	if (bar && compare_shown(table, &single, &singles->list[bar - 1]) > 0) {
		drop(table, &single);
		return true;
	}
	if (singles->count >= most && !prune(table, singles, most))
		return false;
	*MEM_ADD(singles->list, singles->count, singles->capacity) = single;
	return true;
}

void table_singles_insert(struct table *table)
{
	struct table_singles *singles = table->singles;

	if (!singles)
		return;
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
