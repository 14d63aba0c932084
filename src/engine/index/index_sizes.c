// Sizes of a block of steps, written and read, and peaks by them.
//
//     varint   how many
//     of each, by rising size: varints of the size, less that before it; how many began; the change
//     of the level, as zigzag; the highest
//
// A row's level goes from block to block by its sums. Where an edge of the window cuts a block, or
// a process ends in it, which takes what it has off the levels, its steps are gone through at once.
// Of all others the one that has the highest level is remembered, and those with the first and
// the last beginning, and looked at when all is known (look_closer): three blocks for each row, of
// a thousand and more.
#include "engine/index/index_sizes.h"

#include "base/mem.h"
#include "base/sort.h"
#include "engine/index/index_scan.h"

#include <stdlib.h>
#include <string.h>

struct index_sizes *index_sizes_new(void)
{
	return mem_alloc(1, sizeof(struct index_sizes));
}

void index_sizes_free(struct index_sizes *sizes)
{
	if (!sizes)
		return;
	map_fini(&sizes->large);
	MEM_FREE(sizes->list, sizes);
}

struct index_size *index_sizes_add(struct index_sizes *sizes, uint64_t size)
{
	bool small = size < INDEX_SIZES_SMALL;
	uint64_t *place = small ? NULL : map_put(&sizes->large, size, NULL);

	ASSERT(!small || sizes->small[size] == 0);
	if (place && *place)
		return &sizes->list[*place - 1];
	*MEM_ADD(sizes->list, sizes->count, sizes->capacity) = (struct index_size){ .size = size };
	if (place)
		*place = sizes->count;
	else
		sizes->small[size] = (uint32_t)sizes->count;
	return &sizes->list[sizes->count - 1];
}

SORT_ORDER(compare_sizes, struct index_size, SORT_RISES(size))

void index_sizes_write(struct index_sizes *sizes, struct index_files *files)
{
	uint8_t *out = mem_resize(NULL, 10 + sizes->count * 4 * 10, 1), *at = out;
	uint64_t last = 0;

	ASSERT(files->blocks_count > 0);
	files->blocks[files->blocks_count - 1].sizes_at = files->sizes.size;
	if (sizes->count > 1)
		qsort(sizes->list, sizes->count, sizeof *sizes->list, compare_sizes);
	at += bits_put_varint(at, sizes->count);
	for (size_t i = 0; i < sizes->count; i++) {
		const struct index_size *one = &sizes->list[i];

		ASSERT(one->most >= 0 && one->level <= one->most);
		at += bits_put_varint(at, one->size - last);
		at += bits_put_varint(at, one->begun);
		at += bits_put_varint(at, bits_zigzag((uint64_t)(int64_t)one->level));
		at += bits_put_varint(at, (uint64_t)one->most);
		last = one->size;
		if (last < INDEX_SIZES_SMALL)
			sizes->small[last] = 0;
	}
	vault_append(&files->sizes, out, (size_t)(at - out));
	map_clear(&sizes->large);
	sizes->count = 0;
	mem_free(out);
}

// ---- reading ----

// What is read of a file block by block. `= { 0 }` is a valid one.
struct reading {
	struct index_size *list;
	size_t count, capacity;
	uint8_t *bytes;
	size_t bytes_capacity;
};

static bool damaged(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: sizes");
}

static bool take_size(const uint8_t **at, const uint8_t *end, uint64_t last, struct index_size *one)
{
	uint64_t begun, level, most;

	one->size = last + bits_take_varint(at, end);
	begun = bits_take_varint(at, end);
	level = bits_unzigzag(bits_take_varint(at, end));
	most = bits_take_varint(at, end);
	one->begun = (uint32_t)begun;
	one->level = (int32_t)(int64_t)level;
	one->most = (int32_t)most;
	return *at <= end && begun <= INT32_MAX && most <= begun && (int64_t)level >= INT32_MIN &&
	       (int64_t)level <= (int64_t)most;
}

static bool read_sizes(struct reading *reading, struct index *index, size_t block, struct err *err)
{
	const struct index_files *files = &index->files;
	uint64_t from = files->blocks[block].sizes_at, count;
	uint64_t to = block + 1 < files->blocks_count ? files->blocks[block + 1].sizes_at
						      : files->sizes.size;
	const uint8_t *at, *end;

	ASSERT(block < files->blocks_count);
	if (from >= to || to > files->sizes.size)
		return damaged(err);
	reading->bytes = mem_grow(reading->bytes, &reading->bytes_capacity, (size_t)(to - from), 1);
	if (!vault_read(&index->files.sizes, from, reading->bytes, (size_t)(to - from), err))
		return false;
	at = reading->bytes;
	end = at + (to - from);
	count = bits_take_varint(&at, end);
	if (count > to - from)
		return damaged(err);
	MEM_ROOM(reading->list, reading->capacity, count + 1);
	reading->count = (size_t)count;
	for (size_t i = 0; i < reading->count; i++)
		if (!take_size(&at, end, i ? reading->list[i - 1].size : 0, &reading->list[i]) ||
		    (i > 0 && reading->list[i].size <= reading->list[i - 1].size))
			return damaged(err);
	return at == end || damaged(err);
}

// What a block has of a size; NULL: nothing. Sizes are asked for as they rise: `*at` is where the
// next one is looked for, 0 at first.
static const struct index_size *size_in(const struct reading *reading, size_t *at, uint64_t size)
{
	while (*at < reading->count && reading->list[*at].size < size)
		++*at;
	return *at < reading->count && reading->list[*at].size == size ? &reading->list[*at] : NULL;
}

// What has no mark is not read.
bool index_sizes_mark(struct index *index, const struct index_first *list, size_t count,
		      uint64_t from, uint64_t to, uint8_t *marks, struct err *err)
{
	unsigned log2 = index->shape.block_log2;
	struct reading reading = { 0 };
	uint64_t first = from >> log2;
	bool ok = true;

	ASSERT(from < to);
	for (uint64_t block = first; ok && block << log2 < to; block++) {
		bool any = false;
		size_t at = 0;

		if (!marks[block - first])
			continue;
		ok = read_sizes(&reading, index, (size_t)block, err);
		for (size_t i = 0; ok && !any && i < count; i++)
			any = size_in(&reading, &at, list[i].size);
		marks[block - first] = any;
	}
	MEM_FREE(reading.list, reading.bytes);
	return ok;
}

// Returns how many were found.
static size_t first_in_block(struct index_first *list, size_t count, const struct reading *reading,
			     uint64_t block_end)
{
	size_t at = 0, found = 0;

	for (size_t i = 0; i < count; i++) {
		struct index_first *first = &list[i];
		const struct index_size *here = size_in(reading, &at, first->size);

		if (!here || first->latest != UINT64_MAX)
			continue;
		if (here->begun < first->wanted) {
			first->wanted -= here->begun;
			continue;
		}
		first->latest = block_end;
		found++;
	}
	return found;
}

// Of a block that begins before `from` it is not known what began where, so none of it is counted.
bool index_sizes_first(struct index *index, struct index_first *list, size_t count, uint64_t from,
		       uint64_t to, struct err *err)
{
	unsigned log2 = index->shape.block_log2;
	struct reading reading = { 0 };
	size_t left = count;
	bool ok = true;

	ASSERT(from <= to);
	for (size_t i = 0; i < count; i++)
		list[i].latest = UINT64_MAX;
	for (uint64_t block = (from + (UINT64_C(1) << log2) - 1) >> log2;
	     ok && left > 0 && block << log2 < to; block++) {
		ok = read_sizes(&reading, index, (size_t)block, err);
		if (ok)
			left -= first_in_block(list, count, &reading, (block + 1) << log2);
	}
	MEM_FREE(reading.list, reading.bytes);
	return ok;
}

// ---- rows ----

enum {
	BLOCKS_MIN = 8, // a window of fewer is gone through
	EXITS_MAX = 8,  // and one with more ends of processes
	NOWHERE = -1,
};

// A block of steps that is to be looked at, and the row's level before it.
struct place {
	int64_t block; // NOWHERE: it was looked at, or is nowhere
	uint64_t level;
};

// Of one size. All counts are of blocks.
struct row {
	uint64_t size;
	uint32_t detail; // whose
	bool dead;       // there are other sizes in it, or some of this size are not
	uint64_t level, begun_with, most, most_edge;
	uint64_t first_ns, last_ns; // UINT64_MAX: not known
	struct place peak, first, last;
};

// What the steps of one block say of a row.
struct seen {
	bool wanted;
	uint64_t level, most, most_edge, first_ns, last_ns;
};

struct sizing {
	struct index *index;
	const struct window_query *query;
	struct row *rows; // by size
	size_t rows_count;
	uint32_t *row_of; // by group: number + 1
	struct seen *seen;
	struct index_scan scan;
};

SORT_ORDER(compare_rows, struct row, SORT_RISES(size), SORT_RISES(detail))

static bool see_step(void *context, const struct index_scan_step *step)
{
	const struct sizing *sizing = context;
	uint32_t row = sizing->row_of[step->group];
	struct seen *seen = row ? &sizing->seen[row - 1] : NULL;

	if (!seen || !seen->wanted)
		return true;
	if (!step->up) {
		seen->level -= step->amount.count;
		return true;
	}
	if (++seen->level > seen->most) {
		seen->most = seen->level;
		seen->most_edge = step->step + 1;
	}
	if (seen->first_ns == UINT64_MAX)
		seen->first_ns = step->time_ns;
	seen->last_ns = step->time_ns;
	return true;
}

static void begin_seeing(struct seen *seen, uint64_t level)
{
	*seen = (struct seen){ .wanted = true,
			       .level = level,
			       .most = level,
			       .first_ns = UINT64_MAX,
			       .last_ns = UINT64_MAX };
}

// The steps of a block that are in the window.
static bool see_block(struct sizing *sizing, size_t block, struct err *err)
{
	const struct window_query *query = sizing->query;
	unsigned log2 = sizing->index->shape.block_log2;
	uint64_t from = (uint64_t)block << log2, to = (block + UINT64_C(1)) << log2;

	sizing->scan.from = from > query->from ? from : query->from;
	sizing->scan.to = to < query->to ? to : query->to;
	ASSERT(sizing->scan.from < sizing->scan.to);
	return index_scan(&sizing->scan, err);
}

// Whether sums say all of a block.
static bool is_told(const struct sizing *sizing, size_t block)
{
	const struct index *index = sizing->index;
	unsigned log2 = index->shape.block_log2;
	uint64_t from = (uint64_t)block << log2, to = (block + UINT64_C(1)) << log2;

	if (from < sizing->query->from ||
	    (to > sizing->query->to && sizing->query->to < index->steps_end))
		return false;
	for (size_t i = 0; i < index->exits_count; i++)
		if (index->exits[i].step >> log2 == block)
			return false;
	return true;
}

static bool go_through_block(struct sizing *sizing, size_t block, struct err *err)
{
	for (size_t i = 0; i < sizing->rows_count; i++)
		begin_seeing(&sizing->seen[i], sizing->rows[i].level);
	if (!see_block(sizing, block, err))
		return false;
	for (size_t i = 0; i < sizing->rows_count; i++) {
		const struct seen *seen = &sizing->seen[i];
		struct row *row = &sizing->rows[i];

		if (seen->most > row->most) {
			row->most = seen->most;
			row->most_edge = seen->most_edge;
			row->peak.block = NOWHERE;
		}
		if (seen->first_ns != UINT64_MAX) {
			if (row->first_ns == UINT64_MAX && row->first.block == NOWHERE)
				row->first_ns = seen->first_ns;
			row->last_ns = seen->last_ns;
			row->last.block = NOWHERE;
		}
		row->level = seen->level;
	}
	return true;
}

static void add_sums(struct row *row, const struct index_size *sums, size_t block)
{
	struct place here = { (int64_t)block, row->level };

	ASSERT(sums->size == row->size && sums->most >= 0);
	if (row->level + (uint64_t)sums->most > row->most) {
		row->most = row->level + (uint64_t)sums->most;
		row->peak = here;
	}
	if (sums->begun > 0) {
		if (row->first_ns == UINT64_MAX && row->first.block == NOWHERE)
			row->first = here;
		row->last = here;
	}
	row->level += (uint64_t)(int64_t)sums->level;
}

// Two rows may not be of one size: all of it is in one group.
static void add_block(struct sizing *sizing, const struct reading *reading, size_t block)
{
	size_t at = 0;

	for (size_t i = 0; i < sizing->rows_count; i++) {
		const struct index_size *sums = size_in(reading, &at, sizing->rows[i].size);

		if (sums)
			add_sums(&sizing->rows[i], sums, block);
	}
}

static bool walk_blocks(struct sizing *sizing, struct err *err)
{
	unsigned log2 = sizing->index->shape.block_log2;
	struct reading reading = { 0 };
	bool ok = true;

	ASSERT(sizing->query->from < sizing->query->to);
	for (size_t block = (size_t)(sizing->query->from >> log2);
	     ok && (uint64_t)block << log2 < sizing->query->to; block++) {
		if (!is_told(sizing, block)) {
			ok = go_through_block(sizing, block, err);
			continue;
		}
		ok = read_sizes(&reading, sizing->index, block, err);
		if (ok)
			add_block(sizing, &reading, block);
	}
	MEM_FREE(reading.list, reading.bytes);
	return ok;
}

// ---- what sums do not say ----

struct look {
	int64_t block;
	uint64_t level;
	uint32_t row;
};

SORT_ORDER(compare_looks, struct look, SORT_RISES(block), SORT_RISES(row))

// What was looked for in a block is there, or its sums are not those of its steps.
static bool take_seen(struct row *row, const struct seen *seen, int64_t block, struct err *err)
{
	bool good = true;

	ASSERT(seen->wanted && block != NOWHERE);
	if (row->peak.block == block) {
		row->most_edge = seen->most_edge;
		good &= seen->most == row->most;
	}
	if (row->first.block == block) {
		row->first_ns = seen->first_ns;
		good &= seen->first_ns != UINT64_MAX;
	}
	if (row->last.block == block) {
		row->last_ns = seen->last_ns;
		good &= seen->last_ns != UINT64_MAX;
	}
	return good || damaged(err);
}

static bool look_closer(struct sizing *sizing, struct err *err)
{
	struct look *looks = mem_alloc(3 * sizing->rows_count + 1, sizeof *looks);
	size_t count = 0, end;
	bool ok = true;

	for (size_t i = 0; i < sizing->rows_count; i++) {
		const struct row *row = &sizing->rows[i];
		const struct place *places[] = { &row->peak, &row->first, &row->last };

		for (size_t k = 0; k < 3; k++)
			if (places[k]->block != NOWHERE)
				looks[count++] = (struct look){ places[k]->block, places[k]->level,
								(uint32_t)i };
	}
	if (count > 1)
		qsort(looks, count, sizeof *looks, compare_looks);
	for (size_t begin = 0; ok && begin < count; begin = end) {
		for (size_t i = 0; i < sizing->rows_count; i++)
			sizing->seen[i].wanted = false;
		for (end = begin; end < count && looks[end].block == looks[begin].block; end++)
			begin_seeing(&sizing->seen[looks[end].row], looks[end].level);
		ok = see_block(sizing, (size_t)looks[begin].block, err);
		for (size_t i = begin; ok && i < end; i++)
			ok = take_seen(&sizing->rows[looks[i].row], &sizing->seen[looks[i].row],
				       looks[i].block, err);
	}
	mem_free(looks);
	return ok;
}

// ---- which rows are of one size ----

// Above that, bytes of some thousand blocks are beyond 64 bits.
enum { SIZE_LOG2_MAX = 40 };

// Rows whose cells have all one size, if no other row is of it.
static void find_sizes(struct sizing *sizing, struct row *rows, size_t count, struct map *of_size)
{
	const struct cells *cells = &sizing->index->cells;
	bool *met = mem_alloc(count + 1, sizeof *met);

	for (uint32_t id = 1; id < cells->cells_count; id++) {
		uint32_t group = sizing->scan.of_cell[id];
		uint64_t size = cells_cell(cells, id).size, *of;
		uint32_t at;

		if (group == WINDOW_SKIP)
			continue;
		ASSERT(sizing->row_of[group] > 0 && sizing->row_of[group] <= count);
		at = sizing->row_of[group] - 1;
		if (!met[at]) {
			met[at] = true;
			rows[at].size = size;
			of = map_put(of_size, size, NULL);
			if (*of)
				rows[at].dead = rows[*of - 1].dead = true;
			*of = at + (uint64_t)1;
			rows[at].dead |= size >> SIZE_LOG2_MAX > 0;
		} else if (rows[at].size != size) {
			rows[at].dead = true;
		}
	}
	for (size_t i = 0; i < count; i++)
		rows[i].dead |= !met[i];
	mem_free(met);
}

// Rows of whose size there is something in other groups, too.
static void leave_parts(const struct sizing *sizing, struct row *rows, const struct map *of_size)
{
	const struct cells *cells = &sizing->index->cells;

	for (uint32_t id = 1; id < cells->cells_count; id++) {
		struct cells_cell cell = cells_cell(cells, id);
		const uint64_t *of;

		if (sizing->scan.of_cell[id] != WINDOW_SKIP ||
		    cells_site(cells, cell.site)->orphans)
			continue;
		of = map_find(of_size, cell.size);
		if (of)
			rows[*of - 1].dead = true;
	}
}

// Those that are left, numbered anew.
static void find_rows(struct sizing *sizing, const struct window_detail *details, size_t count,
		      const uint32_t *state_of, size_t groups_count)
{
	struct row *rows = mem_alloc(count + 1, sizeof *rows);
	struct map of_size = { 0 };
	size_t alive = 0;

	for (size_t i = 0; i < count; i++)
		rows[i] = (struct row){ .detail = (uint32_t)i,
					.first_ns = UINT64_MAX,
					.last_ns = UINT64_MAX,
					.peak.block = NOWHERE,
					.first.block = NOWHERE,
					.last.block = NOWHERE };
	memcpy(sizing->row_of, state_of, groups_count * sizeof *state_of);
	find_sizes(sizing, rows, count, &of_size);
	for (size_t i = 0; i < count; i++)
		alive += !rows[i].dead;
	if (alive > 0)
		leave_parts(sizing, rows, &of_size);
	memset(sizing->row_of, 0, groups_count * sizeof *state_of);
	for (size_t i = 0; i < count; i++)
		if (!rows[i].dead)
			rows[sizing->rows_count++] = rows[i];
	if (sizing->rows_count > 1)
		qsort(rows, sizing->rows_count, sizeof *rows, compare_rows);
	for (size_t i = 0; i < sizing->rows_count; i++)
		sizing->row_of[details[rows[i].detail].group] = (uint32_t)i + 1;
	sizing->rows = rows;
	map_fini(&of_size);
}

// Levels where the window begins: the peak is the highest from there on.
static bool begin_rows(struct sizing *sizing, const struct window_detail *details,
		       size_t groups_count, struct err *err)
{
	struct heap_amount *levels = index_scan_levels(sizing->index, sizing->query,
						       sizing->query->from, groups_count, err);

	for (size_t i = 0; levels && i < sizing->rows_count; i++) {
		struct row *row = &sizing->rows[i];

		row->level = row->begun_with = row->most = levels[details[row->detail].group].count;
		row->most_edge = sizing->query->from;
	}
	mem_free(levels);
	return levels != NULL;
}

static void end_row(const struct row *row, uint64_t from, struct window_detail *detail)
{
	bool moves = row->size > 0; // blocks without bytes are always at their peak

	ASSERT(!row->dead && row->most >= row->begun_with);
	*detail = (struct window_detail){
		.group = detail->group,
		.peak_bytes = row->most * row->size,
		.peak_count = moves ? row->most : row->begun_with,
		.most_count = row->most,
		.peak_edge = moves ? row->most_edge : from,
		.first_ns = row->first_ns != UINT64_MAX ? row->first_ns : 0,
		.last_ns = row->last_ns != UINT64_MAX ? row->last_ns : 0,
	};
}

static bool is_worth_it(const struct index *index, const struct window_query *query)
{
	size_t exits = 0;

	for (size_t i = 0; i < index->exits_count; i++)
		exits += index->exits[i].step >= query->from && index->exits[i].step < query->to;
	return exits <= EXITS_MAX &&
	       (query->to - query->from) >> index->shape.block_log2 >= BLOCKS_MIN;
}

bool index_size_peaks(struct index *index, const struct window_query *query,
		      struct window_detail *details, size_t count, const uint32_t *state_of,
		      size_t groups_count, bool *done, struct err *err)
{
	struct sizing sizing = { .index = index, .query = query };
	struct index_groups groups;
	struct index_block kept = { 0 };
	bool ok = true;

	ASSERT(query->by_size);
	if (!is_worth_it(index, query))
		return true;
	index_groups_init(&groups, index, query);
	sizing.scan = (struct index_scan){ .index = index,
					   .groups = &groups,
					   .groups_count = (uint32_t)groups_count,
					   .wanted = state_of,
					   .kept = &kept,
					   .context = &sizing,
					   .visit = see_step };
	sizing.row_of = mem_alloc(groups_count + 1, sizeof *sizing.row_of);
	sizing.seen = mem_alloc(count + 1, sizeof *sizing.seen);
	index_scan_prepare(&sizing.scan);
	find_rows(&sizing, details, count, state_of, groups_count);
	if (sizing.rows_count > 0)
		ok = begin_rows(&sizing, details, groups_count, err) && walk_blocks(&sizing, err) &&
		     look_closer(&sizing, err);
	for (size_t i = 0; ok && i < sizing.rows_count; i++) {
		end_row(&sizing.rows[i], query->from, &details[sizing.rows[i].detail]);
		done[sizing.rows[i].detail] = true;
	}
	index_scan_fini(&sizing.scan);
	index_groups_fini(&groups);
	index_block_fini(&kept);
	MEM_FREE(sizing.rows, sizing.row_of, sizing.seen);
	return ok;
}
