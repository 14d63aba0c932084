// Which stacks are in a window, and what the window has of each.
//
// The engine is asked for the sums of each stack before any of them is given a name. What rows need
// that are told apart by their stacks alone (--by stack, function, line, module, tag, impact, type)
// is in that answer already, for names only put stacks together: such levels are added up from it,
// and the engine is not asked again. For example, with --by impact,stack one question answers for
// the total, the impacts and the stacks.
//
// Stacks are numbered as the engine comes upon them, those of frees of nothing known beside those
// of allocations. Levels number their groups in the same order, so a group's number is never larger
// than that of its first stack, and the last level is added up in place.
#include "report/table/table.h"

#include "base/mem.h"

enum { KEPT_PART = 4 }; // of the memory that may be used: what is kept of stacks

// The number of a stack, + 1; 0: it is not in the window. A stack that the trace does not have
// shares that of stack 0.
static uint32_t *number_of(const struct table *table, stack_id stack, bool orphans)
{
	return &table->present[2 * (size_t)(stack < table->stacks_count ? stack : 0) + orphans];
}

bool table_is_present(const struct table *table, stack_id stack)
{
	return !table->present || *number_of(table, stack, false) || *number_of(table, stack, true);
}

// A grouping by the stack itself, which needs no names.
static uint32_t group_by_stack(void *context, const struct window_cell *cell)
{
	struct table *table = context;
	uint32_t *number;

	if (!query_context_selects(table->asked, cell))
		return WINDOW_SKIP;
	number = number_of(table, cell->stack, cell->orphans);
	if (!*number)
		*number = ++table->present_count;
	return *number - 1;
}

// Estimates are rounded group by group, so sums of them would differ. Too many are not kept, as
// they take the room of rows.
static bool can_keep(const struct table *table, const struct window_result *result)
{
	uint64_t memory = table->asked->options.window.memory_bytes;

	if (memory == 0)
		memory = UINT64_C(256) << 20;
	return !reader_is_estimated(table->asked->reader) && !result->spreads &&
	       result->rows_count * sizeof *result->rows <= memory / KEPT_PART;
}

// The engine asks for the group of each cell that it comes upon. A stack of which the window then
// has nothing loses its number again.
bool table_find_present(struct table *table, struct err *err)
{
	struct window_query query = query_context_query(table->asked, QUERY_CONTEXT_ALL,
							table->asked->from, table->asked->to);
	struct window_result *result = &table->by_stack;

	table->stacks_count = reader_stacks_count(table->asked->reader);
	table->present = mem_alloc(2 * (table->stacks_count + (size_t)1), sizeof *table->present);
	query.group = group_by_stack;
	query.context = table;
	if (!window_ask(table->asked->window, &query, result, err))
		return false;
	for (size_t i = 0; i < 2 * (table->stacks_count + (size_t)1); i++) {
		uint32_t number = table->present[i];
		struct window_rest rest;

		if (number == 0)
			continue;
		rest = window_rest_of(result, number - 1);
		if (number > result->rows_count ||
		    window_is_empty(&result->rows[number - 1], &rest))
			table->present[i] = 0;
	}
	table->sums_kept = can_keep(table, result);
	if (!table->sums_kept)
		table_forget_sums(table);
	return true;
}

void table_forget_sums(struct table *table)
{
	window_result_fini(&table->by_stack);
	table->by_stack = (struct window_result){ 0 };
	table->sums_kept = false;
}

// Whether a first question has already told the sums of rows so deep: only of keys that follow from
// the stack alone, or from the type.
bool table_has_sums(const struct table *table, size_t depth)
{
	const struct keys *keys = &table->options->keys;

	if (!table->sums_kept || depth > keys->count)
		return false;
	for (size_t i = 0; i < depth; i++)
		if (keys->list[i] != KEYS_STACK && keys->list[i] != KEYS_FUNCTION &&
		    keys->list[i] != KEYS_LINE && keys->list[i] != KEYS_MODULE &&
		    keys->list[i] != KEYS_TAG && keys->list[i] != KEYS_IMPACT &&
		    keys->list[i] != KEYS_TYPE)
			return false;
	return true;
}

// Where the number is, its stack, twice, + 1 for frees of nothing known. Owned by the caller.
static uint32_t *list_stacks(const struct table *table)
{
	uint32_t *list = mem_alloc(table->present_count + (size_t)1, sizeof *list);

	for (size_t i = 0; i < 2 * (table->stacks_count + (size_t)1); i++)
		if (table->present[i])
			list[table->present[i] - 1] = (uint32_t)i;
	return list;
}

// Groups are numbered in the order of their first stacks, so a row is added up at a place that was
// read already. The last level therefore takes over the array of the stacks' rows and is made in
// it; for a level before that the rows are needed again, and it has an array of its own.
void table_sum_up(struct table *table, size_t depth,
		  uint32_t (*group)(void *context, const struct window_cell *cell), void *context,
		  struct window_result *result)
{
	bool last = !table_has_sums(table, depth + 1);
	struct window_result *from = &table->by_stack;
	uint32_t *stacks = list_stacks(table);
	size_t count = 0, capacity = last ? from->rows_count : 0, rests = from->rests_count;

	ASSERT(table_has_sums(table, depth));
	*result = *from;
	if (!last) {
		result->rows = NULL;
		result->home = NULL;
		result->room = 0;
		result->rests = NULL;
		result->rests_count = 0;
		rests = 0;
	}
	for (uint32_t i = 0; i < from->rows_count; i++) {
		struct window_row row = from->rows[i];
		struct window_rest rest = window_rest_of(from, i);
		struct window_cell cell = { .stack = stacks[i] >> 1, .orphans = stacks[i] & 1 };
		uint32_t to;

		// It has been read, and its place is another row's from here on.
		if (last && i < from->rests_count)
			from->rests[i] = (struct window_rest){ 0 };
		if (window_is_empty(&row, &rest))
			continue;
		to = group(context, &cell);
		ASSERT(to <= i);
		if (to >= count) {
			MEM_ROOM(result->rows, capacity, to + (size_t)1);
			result->rows[to] = (struct window_row){ 0 };
			ASSERT(to == count);
			count++;
		}
		window_add_row(&result->rows[to], &row);
		if (rest.by_exit.count | rest.by_exec.count | rest.by_destroy.count | rest.orphans)
			window_add_rest(window_result_make_rest(result, &rests, to), &rest);
	}
	result->rows_count = (uint32_t)count;
	if (result->rests_count > result->rows_count)
		result->rests_count = result->rows_count;
	if (last)
		table->by_stack = (struct window_result){ 0 };
	table->sums_kept &= !last;
	mem_free(stacks);
}
