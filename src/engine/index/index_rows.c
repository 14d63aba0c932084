// Of a site or cell four sums are known: what lived at `from`, what lived at `to`, what lived at
// both (`stay`), and what was begun in between. The four classes follow. For example, of blocks:
// from 5, to 4, stay 3, begun 6
//
//     AOFO    3    before, and still there: stay
//     AOFI    2    before, freed inside: from - stay
//     AIFO    1    inside, still there: to - stay
//     AIFI    5    inside, freed inside: begun - (to - stay)
//
// The end of a process is one step, so it is put on top of these: what lives at `to` is then its
// rest, and where exits free, nothing lives at `to`.
#include "engine/index/index_rows.h"

#include "base/mem.h"
#include "engine/index/index_tables.h"

// The row of a group, new (all 0) or known. Valid until the next call.
static struct window_row *row_of(struct index_rows *rows, uint32_t group)
{
	struct window_result *result = rows->result;

	if (group >= result->rows_count) {
		if (group >= rows->capacity && result->home) {
			index_tables_lose(result->home, result->rows);
			result->home = NULL;
			result->room = 0;
		}
		MEM_ROOM(result->rows, rows->capacity, group + (size_t)1);
		while (result->rows_count <= group)
			result->rows[result->rows_count++] = (struct window_row){ 0 };
	}
	return &result->rows[group];
}

static struct window_rest *rest_of(struct index_rows *rows, uint32_t group)
{
	row_of(rows, group);
	return window_result_make_rest(rows->result, &rows->rests_capacity, group);
}

static void add_to_row(struct window_row *row, const struct index_figures *figures)
{
	struct heap_amount stays = window_less(figures->to, figures->stay);

	window_add(&row->type[WINDOW_AOFO], figures->stay);
	window_add(&row->type[WINDOW_AOFI], window_less(figures->from, figures->stay));
	window_add(&row->type[WINDOW_AIFO], stays);
	window_add(&row->type[WINDOW_AIFI], window_less(figures->begun, stays));
}

static bool is_no_rest(const struct window_rest *rest)
{
	return (rest->by_exit.count | rest->by_exec.count | rest->orphans) == 0;
}

// What the end of its process does to a site's figures.
static void count_exit(const struct index *index, const struct window_query *query,
		       process_id process, struct index_rows_entry *entry)
{
	const struct index_exit *exit = &index->exits[process];
	struct index_figures *figures = &entry->figures;

	if (process >= index->exits_count || exit->step == WINDOW_NEVER || exit->step >= query->to)
		return;
	// What lives at `to` is what nothing ended: nothing happens in a process that is over.
	if (exit->step >= query->from)
		*(exit->kind == WINDOW_END_EXEC ? &entry->rest.by_exec : &entry->rest.by_exit) =
			figures->to;
	if (!query->exit_frees)
		return;
	figures->to = figures->stay = (struct heap_amount){ 0 };
	if (exit->step < query->from)
		figures->from = figures->begun = (struct heap_amount){ 0 };
}

static bool is_nothing(const struct index_rows_entry *entry)
{
	const struct index_figures *figures = &entry->figures;

	return (figures->begun.count | figures->from.count | figures->to.count) == 0 &&
	       is_no_rest(&entry->rest);
}

static void finish_batch(struct index_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct index_rows_entry *entry = &rows->batch[i];

		add_to_row(row_of(rows, entry->group), &entry->figures);
		if (!is_no_rest(&entry->rest))
			window_add_rest(rest_of(rows, entry->group), &entry->rest);
	}
	rows->count = 0;
}

static void fetch_row(const struct index_rows *rows, uint32_t group)
{
	const char *row = (const char *)&rows->result->rows[group];

	if (group >= rows->capacity)
		return;
	mem_expect(row);
	mem_expect(row + sizeof(struct window_row) - 1);
}

static void add_to_total(struct index_rows_entry *total, const struct index_rows_entry *entry)
{
	index_figures_add(&total->figures, &entry->figures);
	if (!is_no_rest(&entry->rest))
		window_add_rest(&total->rest, &entry->rest);
}

// A site or cell that had nothing in the window is not even asked for its group: most of a large
// trace are such in a narrow window. Rows are filled in batches, while what they need is fetched
// from memory.
void index_rows_add(struct index_rows *rows, uint32_t id, uint64_t size,
		    const struct index_figures *figures)
{
	const struct index *index = rows->index;
	const struct cells_site *site = cells_site(&index->cells, id);
	struct index_rows_entry *entry = &rows->batch[rows->count];

	ASSERT(rows->count < INDEX_ROWS_BATCH);
	entry->figures = *figures;
	entry->rest = (struct window_rest){ 0 };
	if (site->orphans) {
		entry->rest.orphans = figures->begun.count;
		entry->figures = (struct index_figures){ 0 };
	}
	if (is_nothing(entry))
		return;
	count_exit(index, rows->query, site->process, entry);
	if (is_nothing(entry))
		return;
	entry->group = index_group_ask(index, rows->query, id, size);
	if (entry->group == WINDOW_SKIP)
		return;
	fetch_row(rows, entry->group);
	add_to_total(&rows->total, entry);
	if (++rows->count == INDEX_ROWS_BATCH)
		finish_batch(rows);
}

// Room for as many rows as are likely: more than one to a site is rare where sizes are asked for.
void index_rows_begin(struct index_rows *rows, const struct index *index,
		      const struct window_query *query, struct window_result *result, uint32_t keys)
{
	ASSERT(query->from <= query->to);
	*rows = (struct index_rows){
		.index = index, .query = query, .result = result, .capacity = window_room(result)
	};
	if (!query->group || result->rows)
		return;
	rows->capacity = result->room = keys;
	result->home = index->tables;
	result->rows = index_tables_take(result->home, keys, sizeof *result->rows);
}

void index_rows_end(struct index_rows *rows)
{
	finish_batch(rows);
	add_to_row(&rows->result->total, &rows->total.figures);
	window_add_rest(&rows->result->total_rest, &rows->total.rest);
}

void index_rows_destroyed(struct index_rows *rows, uint32_t group, uint64_t size)
{
	struct heap_amount one = { 1, size };

	window_add(&rest_of(rows, group)->by_destroy, one);
	window_add(&rows->result->total_rest.by_destroy, one);
}
