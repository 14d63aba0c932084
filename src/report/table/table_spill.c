// Rows of the last level that do not fit in memory: they go into a file without a name as they are
// made, and are read again a run at a time. Each run gets its details, is sorted, and goes into a
// second file; who writes the table merges all runs. So any number of rows is shown within the
// memory, as they would be if all were there.
//
// For example a million rows with room for 74,000: 14 runs. The first pass over the engine's answer
// puts them into the file; then each run is read, its peaks and medians are asked for, it is sorted
// by the places of its parents, then as rows of one parent are shown, and is written; and while the
// table is written the first rows of all 14 are compared, and the first of these is the next row.
//
// Rows of other levels stay in memory: others are below them.
#include "report/table/table.h"

#include "base/mem.h"
#include "engine/index/spill.h"

#include <stddef.h>

enum {
	RUN_SHARE = 12,   // of the memory: rows of a run
	MERGE_SHARE = 16, // and what is read of all runs at once
	READ_MIN = 16,    // rows of one
	BUFFER = 1 << 18,
	CAME_BYTES = offsetof(struct table_row, detail), // of a row without details
};

// A run that is merged: rows [at, end) of the second file are still to be read, and those from
// `next` on of what was read are still to be taken.
struct run {
	uint64_t at, end;
	struct table_row *rows;
	size_t next, count;
};

struct table_spill {
	struct spill came, sorted;
	uint64_t came_count, sorted_count;
	size_t run_rows, read_rows;
	struct run *runs;
	size_t runs_count, runs_capacity;
	// Runs that have a row, the one with the first row first.
	size_t *heap;
	size_t heap_count;
	// By parent: its place among those that are shown, from 1; 0: it is not.
	uint32_t *rank;
	// By whether a row is of what began and ended in the window: blocks of the present run, and
	// of the run that has most.
	uint64_t blocks[2], most[2];
	// The row that was given last, how many of its parent were, and the sum of their spreads.
	struct table_row row;
	uint64_t given;
	struct window_spread spread;
	struct err err;
	bool failed;
};

// ---- into the file ----

// Both files are made at once, so that what cannot be kept is known before rows are made. Rows of
// this level that are in memory already go into the first with the next one that is added.
bool table_spill_begin(struct table *table, struct err *err)
{
	struct table_spill *spill = mem_alloc(1, sizeof *spill);

	ASSERT(!table->spill);
	table->spill = spill;
	spill->run_rows = table_memory(table) / RUN_SHARE / sizeof(struct table_row) + 1;
	return window_spill(table->asked->window, &spill->came, BUFFER, err) &&
	       window_spill(table->asked->window, &spill->sorted, BUFFER, err);
}

// What is in memory at once is a run, so the largest says whether details of all fit.
static void end_run(struct table_spill *spill)
{
	for (int transient = 0; transient < 2; transient++) {
		if (spill->blocks[transient] > spill->most[transient])
			spill->most[transient] = spill->blocks[transient];
		spill->blocks[transient] = 0;
	}
}

// Its details, and its place among the others of its parent, come when it is read again.
static void put_row(struct table *table, const struct table_row *row)
{
	struct table_spill *spill = table->spill;
	bool transient = table_row_types(table, row) >> WINDOW_AIFI & 1;

	ASSERT(row->parent < table->level_begin);
	table->rows[row->parent].below = true;
	spill->blocks[transient] += window_present(&row->sums).count;
	spill_put(&spill->came, row, CAME_BYTES);
	if (++spill->came_count % spill->run_rows == 0)
		end_run(spill);
}

// Rows wait behind those of the other levels, where they would be if all were in memory: what came
// before there was no room goes into the file like what comes after.
void table_spill_rows(struct table *table, bool all)
{
	size_t waiting = table->rows_count - table->level_begin;

	if (!all && waiting < table->spill->run_rows)
		return;
	for (size_t i = table->level_begin; i < table->rows_count; i++)
		put_row(table, &table->rows[i]);
	table->rows_count = table->level_begin;
	if (all)
		end_run(table->spill);
}

uint64_t table_spill_blocks(const struct table *table, bool transient)
{
	return table->spill->most[transient];
}

// ---- sorted ----

// No two rows are equal: of one parent they differ by their values.
static int compare(const struct table *table, const struct table_row *left,
		   const struct table_row *right)
{
	const uint32_t *rank = table->spill->rank;

	if (left->parent != right->parent)
		return rank[left->parent] < rank[right->parent] ? -1 : 1;
	return table_compare_shown(table, left, right);
}

static int compare_places(const void *a, const void *b, void *context)
{
	const struct table *table = context;

	return compare(table, &table->rows[*(const uint32_t *)a],
		       &table->rows[*(const uint32_t *)b]);
}

// In the order in which the rows that are shown are written, each before those below it.
static void rank_parents(struct table *table)
{
	struct table_spill *spill = table->spill;
	uint32_t at[KEYS_COUNT + 1] = { 0 }, path[KEYS_COUNT + 1] = { 0 }, rank = 0;
	size_t depth = 0;

	spill->rank = mem_alloc(table->rows_count, sizeof *spill->rank);
	spill->rank[0] = ++rank;
	for (;;) {
		const struct table_row *row = &table->rows[path[depth]];

		if (at[depth] < row->shown_count) {
			path[depth + 1] = table->order[row->children + at[depth]++];
			at[++depth] = 0;
			spill->rank[path[depth]] = ++rank;
		} else if (depth-- == 0) {
			return;
		}
	}
}

// Whether the row is shown, as table_sort has it, where so many of its parent's are before it.
static bool shows(const struct table *table, const struct table_row *row, uint64_t before)
{
	const struct table_options *options = table->options;

	return row->orphans || ((!options->rows_max || before < options->rows_max) &&
				(uint64_t)table_figure(row, TABLE_SIZE) >= options->bytes_min);
}

// Behind the rows of the other levels, where a level's rows are found by table_detail.
static bool read_run(struct table *table, size_t count)
{
	struct table_spill *spill = table->spill;
	size_t begin = table->level_begin;

	MEM_ROOM(table->rows, table->rows_capacity, begin + count);
	memset(table->rows + begin, 0, count * sizeof *table->rows);
	table->rows_count = begin + count;
	for (size_t i = begin; i < table->rows_count; i++)
		if (!spill_get(&spill->came, &table->rows[i], CAME_BYTES))
			return false;
	return true;
}

// What would not be shown of the run alone is not shown of all.
// For example of the ten heaviest of each parent no run has more than ten.
static void write_run(struct table *table, uint32_t *list, size_t count)
{
	struct table_spill *spill = table->spill;
	struct run *run = MEM_ADD(spill->runs, spill->runs_count, spill->runs_capacity);
	uint64_t before = 0;

	ASSERT(count <= spill->run_rows);
	mem_sort(list, count, sizeof *list, compare_places, table);
	*run = (struct run){ .at = spill->sorted_count };
	for (size_t i = 0; i < count; i++) {
		const struct table_row *row = &table->rows[list[i]];

		if (i > 0 && table->rows[list[i - 1]].parent != row->parent)
			before = 0;
		if (!shows(table, row, before)) {
			table_drop(table, row->parent, 1, &row->sums);
			continue;
		}
		before++;
		spill_put(&spill->sorted, row, sizeof *row);
		spill->sorted_count++;
	}
	run->end = spill->sorted_count;
}

// Rows below one that is not shown are left out: nothing is said of them.
static bool sort_run(struct table *table, size_t count, struct err *err)
{
	const struct table_options *options = table->options;
	struct table_spill *spill = table->spill;
	uint32_t *list = mem_alloc(count, sizeof *list);
	size_t listed = 0;
	bool good = true;

	if (!read_run(table, count)) {
		mem_free(list);
		return spill_ok(&spill->came, err) &&
		       err_set(err, ERR_IO, "cannot read a temporary file");
	}
	for (size_t i = table->level_begin; i < table->rows_count; i++)
		if (spill->rank[table->rows[i].parent])
			list[listed++] = (uint32_t)i;
	if (options->details || (options->sorted && table_column_details(options->sort)))
		good = table_detail(table, list, listed, err);
	if (good)
		write_run(table, list, listed);
	table->rows_count = table->level_begin;
	mem_free(list);
	return good;
}

// ---- merged ----

// The next rows of a run, as many as there is room for; none at its end.
static bool fill(struct table_spill *spill, struct run *run)
{
	uint64_t left = run->end - run->at;
	size_t count = left < spill->read_rows ? (size_t)left : spill->read_rows;

	if (!spill_copy(&spill->sorted, run->at * sizeof *run->rows, run->rows,
			count * sizeof *run->rows))
		return false;
	run->at += count;
	run->next = 0;
	run->count = count;
	return true;
}

// Both have rows.
static bool is_before(const struct table *table, size_t left, size_t right)
{
	const struct run *a = &table->spill->runs[left], *b = &table->spill->runs[right];

	return compare(table, &a->rows[a->next], &b->rows[b->next]) < 0;
}

// Restore the heap's order below a place: what is there goes down as long as one of the two below
// it comes before it.
static void sink_down(const struct table *table, size_t at)
{
	struct table_spill *spill = table->spill;
	size_t child;

	while ((child = 2 * at + 1) < spill->heap_count) {
		size_t run = spill->heap[at];

		if (child + 1 < spill->heap_count &&
		    is_before(table, spill->heap[child + 1], spill->heap[child]))
			child++;
		if (!is_before(table, spill->heap[child], run))
			return;
		spill->heap[at] = spill->heap[child];
		spill->heap[child] = run;
		at = child;
	}
}

// Each run has a row in the heap as long as there is one; what is read of it ahead is the less the
// more runs there are.
static bool begin_merge(struct table *table)
{
	struct table_spill *spill = table->spill;
	size_t room = table_memory(table) / MERGE_SHARE / sizeof(struct table_row);

	spill->read_rows = room / (spill->runs_count + 1) + READ_MIN;
	spill->heap = mem_alloc(spill->runs_count + 1, sizeof *spill->heap);
	for (size_t i = 0; i < spill->runs_count; i++) {
		struct run *run = &spill->runs[i];

		run->rows = mem_alloc(spill->read_rows, sizeof *run->rows);
		if (!fill(spill, run))
			return false;
		if (run->count > 0)
			spill->heap[spill->heap_count++] = i;
	}
	for (size_t i = spill->heap_count / 2; i-- > 0;)
		sink_down(table, i);
	return true;
}

// What could not be written is said here, before anything is shown.
bool table_spill_sort(struct table *table, struct err *err)
{
	struct table_spill *spill = table->spill;
	bool good;

	spill_turn(&spill->came);
	good = spill_ok(&spill->came, err);
	rank_parents(table);
	for (uint64_t at = 0; good && at < spill->came_count; at += spill->run_rows) {
		uint64_t left = spill->came_count - at;

		good = sort_run(table, left < spill->run_rows ? (size_t)left : spill->run_rows,
				err) &&
		       spill_ok(&spill->sorted, err);
	}
	spill_close(&spill->came);
	return good && (begin_merge(table) || err_set(err, ERR_IO, "cannot read a temporary file"));
}

// The first run's row, which goes to `spill->row`: the place where it was read to may be filled
// again at once. A run that has no more leaves the heap, and the last one there takes its place.
static bool take_row(const struct table *table)
{
	struct table_spill *spill = table->spill;
	struct run *run = &spill->runs[spill->heap[0]];

	spill->row = run->rows[run->next++];
	if (run->next == run->count && !fill(spill, run))
		return false;
	if (run->count == 0)
		spill->heap[0] = spill->heap[--spill->heap_count];
	sink_down(table, 0);
	return true;
}

// Rows of its parent that are not shown are added to those that were dropped, as it comes by them:
// they are all there once the end was met.
const struct table_row *table_spill_next(struct table *table, const struct table_row *parent)
{
	struct table_spill *spill = table->spill;
	uint32_t number = (uint32_t)(parent - table->rows);

	ASSERT(number < table->rows_count);
	while (spill->heap_count > 0 && !spill->failed) {
		const struct run *run = &spill->runs[spill->heap[0]];

		if (run->rows[run->next].parent != number)
			break;
		if (!take_row(table)) {
			spill->failed = true;
			break;
		}
		if (!shows(table, &spill->row, spill->given)) {
			table_drop(table, number, 1, &spill->row.sums);
			continue;
		}
		if (spill->given++ == 0)
			spill->spread = (struct window_spread){ 0 };
		for (int type = 0; type < WINDOW_TYPES; type++)
			spill->spread.type[type] += spill->row.spread.type[type];
		return &spill->row;
	}
	spill->given = 0;
	return NULL;
}

struct window_spread table_spill_spread(const struct table *table)
{
	return table->spill->spread;
}

bool table_written(const struct table *table, struct err *err)
{
	return !table->spill || !table->spill->failed ||
	       err_set(err, ERR_IO, "cannot read a temporary file");
}

void table_spill_free(struct table_spill *spill)
{
	if (!spill)
		return;
	for (size_t i = 0; i < spill->runs_count; i++)
		mem_free(spill->runs[i].rows);
	spill_close(&spill->came);
	spill_close(&spill->sorted);
	MEM_FREE(spill->runs, spill->heap, spill->rank, spill);
}
