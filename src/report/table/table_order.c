// The order of a table's rows, and which of them are shown.
#include "report/table/table.h"

#include "base/mem.h"

#include <string.h>

// The larger comes first.
static int compare_numbers(int64_t left, int64_t right)
{
	return left > right ? -1 : left < right;
}

// A large fall weighs as much as a large rise.
static int64_t weight(const struct table_row *row, enum table_column column)
{
	int64_t figure = table_figure(row, column);

	return column == TABLE_IMPACTING && figure < 0 ? -figure : figure;
}

// By the bytes of the names, as they are shown.
static int compare_names(const struct table *table, const struct table_row *left,
			 const struct table_row *right)
{
	struct str a = { 0 }, b = { 0 };
	int order;

	table_describe(table, left, &a);
	table_describe(table, right, &b);
	order = strcmp(str_get(&a), str_get(&b));
	STR_FINI(&a, &b);
	return order;
}

// By what is said of a row's last key, not by the number that it was given.
static int compare_values(const struct table *table, const struct table_row *left,
			  const struct table_row *right)
{
	uint64_t a = left->value, b = right->value;

	switch (table_key(table, left)) {
	case KEYS_HEAP:
	case KEYS_MODULE:
	case KEYS_FUNCTION:
	case KEYS_LINE:
	case KEYS_TAG:
		return strcmp(labels_get_text(table->labels, (uint32_t)a),
			      labels_get_text(table->labels, (uint32_t)b));
	case KEYS_STACK:
		a = labels_first(table->labels, (uint32_t)a);
		b = labels_first(table->labels, (uint32_t)b);
		break;
	default:
		break;
	}
	return a < b ? -1 : a > b;
}

// TABLE_FIRST is the only column of which the least comes first. What is equal in it goes by
// impact, by size, by count.
int table_compare(const struct table_options *options, const struct table_row *left,
		  const struct table_row *right)
{
	static const enum table_column further[] = { TABLE_IMPACTING, TABLE_SIZE, TABLE_COUNT };
	int order = compare_numbers(weight(left, options->sort), weight(right, options->sort));

	if (options->sort == TABLE_FIRST)
		order = -order;
	for (size_t i = 0; order == 0 && i < sizeof further / sizeof *further; i++)
		order = compare_numbers(weight(left, further[i]), weight(right, further[i]));
	return order;
}

// Heaviest first; impacts, types and phases in their own order; orphans last.
int table_compare_shown(const struct table *table, const struct table_row *left,
			const struct table_row *right)
{
	enum keys_key key = table_key(table, left);
	int order = 0;

	if (left->orphans != right->orphans)
		return left->orphans ? 1 : -1;
	if (!table->options->sorted &&
	    (key == KEYS_IMPACT || key == KEYS_TYPE || key == KEYS_MARK || key == KEYS_LAYER))
		return left->value < right->value ? -1 : left->value > right->value;
	if (table->options->sort == TABLE_NAME)
		order = compare_names(table, left, right);
	if (order == 0)
		order = table_compare(table->options, left, right);
	if (order == 0 && key == KEYS_LIFETIME)
		order = compare_numbers((int64_t)table->allocations[right->value].begin,
					(int64_t)table->allocations[left->value].begin);
	return order == 0 ? compare_values(table, left, right) : order;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct table *table = context;

	return table_compare_shown(table, &table->rows[*(const uint32_t *)a],
				   &table->rows[*(const uint32_t *)b]);
}

// Rows of impacts and types that turned out to be none.
static bool is_void(const struct table_row *row)
{
	return window_present(&row->sums).count == 0 && row->rest.orphans == 0 &&
	       row->children_count == 0 && !row->below;
}

// Two passes put all children of each row side by side: the first counts them from the last row to
// the first, the second gives each row its stretch of `order`, and each child its place there. Rows
// that are void are in no stretch.
void table_lay_out(struct table *table)
{
	uint32_t at = 0;
	bool *none = mem_alloc(table->rows_count, sizeof *none);

	table->order = mem_alloc(table->rows_count + 1, sizeof *table->order);
	// Children stand behind their parents.
	for (size_t i = table->rows_count - 1; i > 0; i--) {
		none[i] = is_void(&table->rows[i]);
		if (!none[i])
			table->rows[table->rows[i].parent].children_count++;
	}
	for (size_t i = 0; i < table->rows_count; i++) {
		table->rows[i].children = at;
		at += table->rows[i].children_count;
		table->rows[i].children_count = 0;
	}
	for (uint32_t i = 1; i < table->rows_count; i++) {
		struct table_row *parent = &table->rows[table->rows[i].parent];

		if (!none[i])
			table->order[parent->children + parent->children_count++] = i;
	}
	ASSERT(at < table->rows_count); // all but the first are somebody's child
	mem_free(none);
}

// Children that are too small may come before larger ones, where it is not sorted by size: those
// that are shown are moved to the front, in their order.
void table_sort(struct table *table)
{
	const struct table_options *options = table->options;

	for (size_t i = 0; i < table->rows_count; i++) {
		struct table_row *row = &table->rows[i];
		uint32_t *children = table->order + row->children;

		if (row->children_count > 1)
			mem_sort(children, row->children_count, sizeof *children, compare_rows,
				 table);
		row->shown_count = 0;
		// What is too small stays behind what is shown.
		for (uint32_t c = 0; c < row->children_count; c++) {
			struct table_row *child = &table->rows[children[c]];
			uint32_t index = children[c];

			if (!child->orphans &&
			    ((options->rows_max && row->shown_count >= options->rows_max) ||
			     (uint64_t)table_figure(child, TABLE_SIZE) < options->bytes_min))
				continue;
			ASSERT(row->shown_count <= c);
			memmove(children + row->shown_count + 1, children + row->shown_count,
				(c - row->shown_count) * sizeof *children);
			children[row->shown_count++] = index;
		}
	}
}

// The rows that are shown, each after its parent; or all.
// Level by level: the list is its own queue.
uint32_t *table_list(const struct table *table, bool all, size_t *count)
{
	uint32_t *list = mem_alloc(table->rows_count, sizeof *list);

	*count = 1;
	list[0] = 0;
	for (size_t at = 0; at < *count; at++) {
		const struct table_row *row = &table->rows[list[at]];
		uint32_t children = all ? row->children_count : row->shown_count;

		for (uint32_t c = 0; c < children; c++)
			list[(*count)++] = table->order[row->children + c];
		ASSERT(*count <= table->rows_count);
	}
	return list;
}
