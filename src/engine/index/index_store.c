// Steps in, files out; index_store.h says which and why.
//
// A batch is 65,536 steps. For each one the block of events is packed; counts by cell move; levels
// and postings are fed. Every so often counts are written as a snapshot: not sooner than 2^18 steps
// after the last, and not sooner than twice as many steps as there are cells. With 10,000 cells
// that is every 262,144 steps, with a million cells every two million, so that snapshots do not
// outgrow the steps between them.
//
// Levels are a pyramid. For example, 4,096 steps are 16 entries of levels0 (256 steps each), four
// of levels1, one of levels2. An entry has the highest, lowest and last level of its steps, and so
// four of them make one of the next file without the steps being seen again.
#include "engine/index/index_store.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "engine/index/index_events.h"
#include "engine/index/index_sizes.h"
#include "engine/index/live_table.h"

#include <stdio.h>
#include <string.h>

_Static_assert(CELLS_SITE_BITS + 1 <= 32, "a step's word is a cell and a bit");
_Static_assert(LIVE_TABLE_CELL_BITS - CELLS_SITE_BITS == 0,
	       "a value of the live table has room for any cell");

_Static_assert(sizeof(struct index_level) == 48, "is in a state as it is in memory");
_Static_assert(sizeof(struct index_chunk) == 40, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_posts_mark) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_skip) == 40, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_block_entry) == 40, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_snapshot) == 32, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_never_block) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_addresses) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_long) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_long_block) == 16, "is on disk as it is in memory");
_Static_assert(sizeof(struct index_count) == 8, "two counts in the slot of a cell");

void index_batch_init(struct index_batch *batch, const struct index_shape *shape)
{
	size_t steps = (size_t)1 << shape->block_log2;

	*batch = (struct index_batch){ .stretch_log2 = shape->stretch_log2 };
	batch->ops = mem_alloc(steps, sizeof *batch->ops);
	batch->begins = mem_alloc(steps, sizeof *batch->begins);
	batch->runs = mem_alloc(steps, sizeof *batch->runs);
	batch->jumps = mem_alloc(steps, sizeof *batch->jumps);
}

void index_batch_fini(struct index_batch *batch)
{
	MEM_FREE(batch->ops, batch->begins, batch->runs, batch->jumps, batch->exits,
		 batch->addresses);
	*batch = (struct index_batch){ 0 };
}

// The file of a number from 0 to INDEX_VAULTS - 1, and what it is called: for those who do the same
// with all of them.
struct vault *index_files_vault(struct index_files *files, unsigned i, char name[24])
{
	struct {
		struct vault *vault;
		const char *name;
	} single[] = {
		{ &files->events, "events" },
		{ &files->times, "times" },
		{ &files->cells, "cells" },
		{ &files->sites, "sites" },
		{ &files->never, "never" },
		{ &files->never_cells, "never-cells" },
		{ &files->posts, "posts" },
		{ &files->posts_sites, "posts-sites" },
		{ &files->never_sites, "never-sites" },
		{ &files->addresses, "addresses" },
		{ &files->calls, "calls" },
		{ &files->sizes, "sizes" },
	};
	unsigned singles = sizeof single / sizeof *single;

	ASSERT(i < INDEX_VAULTS);
	if (i < singles) {
		snprintf(name, 24, "%s", single[i].name);
		return single[i].vault;
	}
	i -= singles;
	if (i < INDEX_LEVELS) {
		snprintf(name, 24, "levels%u", i);
		return &files->levels[i];
	}
	i -= INDEX_LEVELS;
	snprintf(name, 24, "long%u", i);
	return &files->longs[i];
}

void index_files_close(struct index_files *files)
{
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++)
		vault_close(index_files_vault(files, i, name));
	for (size_t i = 0; i < INDEX_LONGS; i++)
		mem_free(files->longs_blocks[i].list);
	for (size_t i = 0; i < INDEX_LEVELS; i++)
		mem_free(files->levels_blocks[i].list);
	for (size_t i = 0; i < INDEX_ADDRESSES; i++)
		mem_free(files->address_blocks[i].list);
	MEM_FREE(files->blocks, files->chunks, files->posts_marks, files->never_blocks,
		 files->cells_snapshots.list, files->sites_snapshots.list,
		 files->never_snapshots.list, files->never_sites_snapshots.list);
	*files = (struct index_files){ 0 };
}

// `create`: the files are made; else they are there (index_state.c). Files of long lifetimes are
// made when the first is met.
bool index_store_open(struct index_store *store, const struct index_shape *shape,
		      const struct cells *cells, struct index_files *files, int directory,
		      bool posts, bool create, struct err *err)
{
	*store = (struct index_store){ .shape = *shape,
				       .table = cells,
				       .files = files,
				       .directory = directory,
				       .posts = posts,
				       .peak_edge = WINDOW_START,
				       .building = { { .bytes_min = UINT64_MAX } } };
	if (posts)
		store->postings = index_postings_new(shape);
	store->sites = mem_alloc((size_t)1 << shape->block_log2, sizeof *store->sites);
	store->work = mem_alloc(1, sizeof *store->work);
	store->sizes = index_sizes_new();
	for (size_t i = 0; i < INDEX_LEVELS; i++)
		store->levels[i] = mem_alloc(PACK_GROUP, sizeof **store->levels);
	store->cells_next = store->sites_next = shape->snapshot_steps;
	store->never_next = shape->snapshot_steps;
	for (unsigned i = 0; i < INDEX_VAULTS_FIRST && create; i++) {
		char name[24];
		struct vault *vault = index_files_vault(files, i, name);

		if (!vault_create(vault, directory, name, err))
			return false;
	}
	return true;
}

void index_store_close(struct index_store *store)
{
	mem_free(store->of_process);
	mem_area_fini(&store->counts_area);
	MEM_FREE(store->bytes, store->never_counts, store->never_values);
	for (size_t i = 0; i < INDEX_ADDRESSES; i++)
		mem_free(store->addresses[i]);
	for (size_t i = 0; i < INDEX_LONGS; i++)
		mem_free(store->longs[i]);
	for (size_t i = 0; i < INDEX_LEVELS; i++)
		mem_free(store->levels[i]);
	MEM_FREE(store->work, store->sites);
	index_postings_free(store->postings);
	index_sizes_free(store->sizes);
	*store = (struct index_store){ 0 };
}

// The first failure is kept, and nothing is added after it: index_store_finish tells of it. Vaults
// keep their own.
static void fail(struct index_store *store, const struct err *err)
{
	if (store->err.kind == ERR_NONE)
		store->err = *err;
}

static uint8_t *scratch(struct index_store *store, size_t size)
{
	store->bytes = mem_grow(store->bytes, &store->bytes_capacity, size, 1);
	return store->bytes;
}

// ---- events and times ----

// The changes of time in a block, as take_times (index_read.c) takes them: how many after the
// first, whose time is in the entry; then of each how many steps and how many nanoseconds after the
// one before. A varint has at most 10 bytes.
static void put_times(struct index_store *store, const struct index_batch *batch,
		      struct index_block_entry *entry)
{
	uint8_t *out = scratch(store, (batch->runs_count + (size_t)1) * 20), *at = out;
	uint32_t last_at = 0;
	uint64_t last = batch->runs[0].value;

	ASSERT(batch->runs_count > 0);
	entry->times_at = store->files->times.size;
	entry->time_ns = last;
	at += bits_put_varint(at, batch->runs_count - 1);
	for (uint32_t i = 1; i < batch->runs_count; i++) {
		at += bits_put_varint(at, batch->runs[i].at - last_at);
		at += bits_put_varint(at, batch->runs[i].value - last);
		last_at = batch->runs[i].at;
		last = batch->runs[i].value;
	}
	entry->times_size = (uint32_t)(at - out);
	vault_append(&store->files->times, out, entry->times_size);
}

static void put_events(struct index_store *store, const struct index_batch *batch,
		       struct index_block_entry *entry)
{
	uint8_t *out = scratch(store, index_events_bytes_max(batch));

	entry->events_at = store->files->events.size;
	entry->events_size = (uint32_t)index_events_put(out, batch, store->work);
	vault_append(&store->files->events, out, entry->events_size);
}

// ---- long lifetimes ----

// How many of a file are in memory and wait for their block to be full: with blocks of 4,096, of
// 10,000 lifetimes 1,808.
uint32_t index_store_waiting(const struct index_store *store, unsigned of)
{
	uint64_t count;

	ASSERT(of < INDEX_ADDRESSES);
	count = of < INDEX_LONGS ? store->files->longs_count[of] : store->never_count;
	return (uint32_t)count & ((1u << store->shape.sparse_log2) - 1);
}

// Of one more of a file, which is already counted there. So it has the place before the one that
// waits next; where none waits, it was the last of a full block. With blocks of 4,096 the first
// address is stored with waiting == 1, in place 0, and the 4,096th with waiting == 0, in place
// 4,095.
static void put_address(struct index_store *store, unsigned of, uint64_t address)
{
	uint32_t block = 1u << store->shape.sparse_log2;
	uint32_t waiting = index_store_waiting(store, of);

	ASSERT(of < INDEX_ADDRESSES);
	if (!store->addresses[of])
		store->addresses[of] = mem_alloc(block, sizeof **store->addresses);
	store->addresses[of][waiting ? waiting - 1 : block - 1] = address;
	if (waiting == 0)
		index_addresses_write(store->files, of, store->addresses[of], block);
}

// The file of a class, which is made when the first lifetime is met.
static bool begin_longs(struct index_store *store, unsigned class)
{
	struct vault *vault = &store->files->longs[class];
	struct err err = { 0 };
	char name[24];

	store->longs[class] =
		mem_alloc((size_t)1 << store->shape.sparse_log2, sizeof **store->longs);
	if (vault->name[0])
		return true;
	snprintf(name, sizeof name, "long%u", class);
	if (vault_create(vault, store->directory, name, &err))
		return true;
	fail(store, &err);
	vault->name[0] = 0;
	return false;
}

// By the binary logarithm of the lifetime, in steps: with a long_log2 of 17, one of 300,000 steps
// (2^18 and more) is in long1. The longest of all share the last class.
static void put_long(struct index_store *store, uint64_t end, uint64_t begin, uint32_t cell,
		     uint64_t address)
{
	unsigned log2 = 63 - (unsigned)__builtin_clzll(end - begin);
	unsigned class = log2 - store->shape.long_log2;
	uint32_t block = 1u << store->shape.sparse_log2, waiting;

	if (class >= INDEX_LONGS)
		class = INDEX_LONGS - 1;
	if (store->err.kind != ERR_NONE || (!store->longs[class] && !begin_longs(store, class)))
		return;
	waiting = index_store_waiting(store, class);
	store->longs[class][waiting] = (struct index_long){ end, live_table_value(begin, cell) };
	store->files->longs_count[class]++;
	if (waiting + 1 == block)
		index_longs_write(store->files, class, store->longs[class], block);
	put_address(store, class, address);
}

// ---- levels ----

// With those before it, when their block is full.
static void put_level(struct index_store *store, unsigned file, const struct index_level *level)
{
	uint64_t entry = store->files->levels_blocks[file].entries++;

	store->levels[file][entry % PACK_GROUP] = *level;
	if ((entry + 1) % PACK_GROUP == 0)
		index_levels_write(store->files, file, store->levels[file], PACK_GROUP);
}

// An entry of a level is whole: write it, and put it into the one above, which takes its time and
// its last level from the newest of its four. Of a level whose file cannot be made no name is left,
// so that index_store_finish does not end what was not begun.
static void level_done(struct index_store *store)
{
	for (unsigned i = 0; i < INDEX_LEVELS; i++) {
		struct index_level *level = &store->building[i], *above = &store->building[i + 1];
		struct vault *vault = &store->files->levels[i];
		struct err err = { 0 };

		if (!vault->name[0]) {
			char name[24];

			snprintf(name, sizeof name, "levels%u", i);
			if (!vault_create(vault, store->directory, name, &err)) {
				fail(store, &err);
				vault->name[0] = 0;
				return;
			}
		}
		put_level(store, i, level);
		if (i + 1 == INDEX_LEVELS)
			return;
		if (store->building_count[i + 1] == 0)
			*above = *level;
		above->time_ns = level->time_ns;
		above->bytes_end = level->bytes_end;
		above->count_end = level->count_end;
		above->over = level->over;
		if (level->bytes_max > above->bytes_max)
			above->bytes_max = level->bytes_max;
		if (level->bytes_min < above->bytes_min)
			above->bytes_min = level->bytes_min;
		if (level->count_max > above->count_max)
			above->count_max = level->count_max;
		if (++store->building_count[i + 1] < 1u << INDEX_LEVEL_STEP_LOG2)
			return;
		store->building_count[i + 1] = 0;
	}
}

// The event of the last step is over: the level is one that was. With 256 steps, or 257 where the
// last two are of one event, the entry is whole.
static void level_over(struct index_store *store)
{
	struct index_level *level = &store->building[0];
	uint32_t steps = 1u << store->shape.level_log2;

	if (store->level.bytes < level->bytes_min)
		level->bytes_min = store->level.bytes;
	if (store->building_count[0] < steps)
		return;
	level->bytes_end = store->level.bytes;
	level->count_end = store->level.count & INT64_MAX;
	level->over = store->building_count[0] > steps;
	store->building_count[0] = level->over;
	level_done(store);
	*level = (struct index_level){ .bytes_min = UINT64_MAX };
}

// Whether a step ends a block that was known.
static bool ends_block(const struct index_batch *batch, uint32_t i)
{
	return batch->ops[i] & 1 && batch->begins[i] > 0;
}

// Whether a step is the first of the two of a realloc: an end, and a beginning of the same event.
// Asked in rising order, of steps that have one after them in the batch; `jump` is where the
// numbers of events are followed.
static bool goes_on(const struct index_batch *batch, uint32_t i, uint32_t *jump)
{
	const struct index_run *jumps = batch->jumps;

	ASSERT(i + 1 < batch->count);
	while (*jump + 1 < batch->jumps_count && jumps[*jump + 1].at <= i + 1)
		++*jump;
	// Where numbers count on, each step is an event.
	return jumps[*jump].at == i + 1 && ends_block(batch, i) && !(batch->ops[i + 1] & 1) &&
	       jumps[*jump].value == jumps[*jump - 1].value + (i - jumps[*jump - 1].at);
}

// The level after a step. A lower one than all before it is rare, and so is the end of an entry:
// only then is it asked whether the event is over. Of the last step of a batch the next says it.
static void level_step(struct index_store *store, const struct index_batch *batch, uint32_t i,
		       uint64_t time_ns, uint32_t *jump)
{
	struct index_level *level = &store->building[0];
	bool whole = ++store->building_count[0] >> store->shape.level_log2;

	if (store->level.bytes > level->bytes_max)
		level->bytes_max = store->level.bytes;
	if (store->level.count > level->count_max)
		level->count_max = store->level.count;
	if (store->level.bytes >= level->bytes_min && !whole)
		return;
	level->time_ns = time_ns;
	if (i + 1 < batch->count && !goes_on(batch, i, jump))
		level_over(store);
}

// What the last step of the batch before has left open, now that it is known whether the first of
// this one is of the same event.
static void level_go_on(struct index_store *store, const struct index_batch *batch)
{
	bool over = store->ended == 0 || batch->jumps[0].value + 1 != store->ended ||
		    batch->ops[0] & 1;

	if (batch->first > 0 && over)
		level_over(store);
}

// ---- counting ----

void index_store_counts(struct index_store *store, size_t cells)
{
	mem_area_grow(&store->counts_area, cells * sizeof *store->counts);
	store->counts = store->counts_area.at;
	store->counts_capacity = cells;
}

static void make_room(struct index_store *store, const struct index_batch *batch)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->ops[i] > most)
			most = batch->ops[i];
	// Not to twice its size: it is one of the largest tables.
	if (most >> 1 >= store->counts_capacity)
		index_store_counts(store, (most >> 1) + store->counts_capacity / 8 + 1024);
}

// Valid until the next call with a higher process, which may move the list.
static struct heap_amount *process_of(struct index_store *store, process_id process)
{
	return MEM_REACH(store->of_process, store->processes_capacity, process);
}

// The peak's edge is that after the step. Of equal levels the first is the peak.
static void begin_one(struct index_store *store, uint64_t step, uint32_t id, uint64_t size,
		      struct heap_amount *process)
{
	ASSERT(id > 0 && id < store->counts_capacity);
	store->counts[id].begun++;
	store->counts[id].alive++;
	index_sizes_begin(store->sizes, size);
	process->count++;
	process->bytes += size;
	store->level.count++;
	store->level.bytes += size;
	if (store->level.bytes > store->peak.bytes) {
		store->peak = store->level;
		store->peak_edge = step + 1;
	}
}

// `addresses`: of this and the long lifetimes that end after it; moved on if it is one.
static void end_one(struct index_store *store, uint64_t step, uint32_t id, uint64_t begin,
		    uint64_t size, struct heap_amount *process, const uint64_t **addresses)
{
	ASSERT(id > 0 && id < store->counts_capacity);
	// An orphan.
	if (begin == 0) {
		store->counts[id].begun++;
		return;
	}
	store->counts[id].alive--;
	index_sizes_end(store->sizes, size);
	process->count--;
	process->bytes -= size;
	store->level.count--;
	store->level.bytes -= size;
	if ((step - begin) >> store->shape.long_log2)
		put_long(store, step, begin, id, *(*addresses)++);
}

// What lives of a process ends with it, at once and by its sums: no block of it is looked at, and
// the counts by cell stay, since its blocks are those that nothing ended.
static void exit_one(struct index_store *store, process_id id)
{
	struct heap_amount *process = process_of(store, id);

	store->level.count -= process->count;
	store->level.bytes -= process->bytes;
	*process = (struct heap_amount){ 0 };
}

// Fetch what soon counts from memory.
static void expect_steps(const struct index_store *store, const struct index_batch *batch,
			 uint32_t i, bool sites)
{
	enum { AHEAD = 24, SITES_AHEAD = 12, LARGE = 1 << 13 };

	// What is smaller is in the caches.
	if (i + AHEAD >= batch->count || store->counts_capacity < LARGE)
		return;
	cells_expect(store->table, batch->ops[i + AHEAD] >> 1);
	mem_expect(&store->counts[batch->ops[i + AHEAD] >> 1]);
	if (sites)
		mem_expect(cells_site(
			store->table,
			cells_cell(store->table, batch->ops[i + SITES_AHEAD] >> 1).site));
}

// The steps of a block, one by one, in everything that counts them: what each cell and process has,
// what lives, the levels. A process's end comes before the step at which it is noted.
static void count_steps(struct index_store *store, const struct index_batch *batch)
{
	const struct cells *table = store->table;
	const struct index_run *run = batch->runs, *runs_end = run + batch->runs_count;
	const struct index_run *exit = batch->exits;
	const struct index_run *exits_end = exit ? exit + batch->exits_count : NULL;
	const uint64_t *addresses = batch->addresses;
	uint64_t time_ns = run->value;
	const struct index_run *last = &batch->jumps[batch->jumps_count - 1];
	uint32_t jump = 0;
	// Sites lie all over memory, and say only which process it is.
	bool several = !cells_of_one_process(table);
	struct heap_amount *amount = process_of(store, cells_site(table, 1)->process);

	level_go_on(store, batch);
	for (uint32_t i = 0; i < batch->count; i++) {
		uint32_t op = batch->ops[i], id = op >> 1;

		expect_steps(store, batch, i, several);
		if (run + 1 < runs_end && run[1].at == i)
			time_ns = (++run)->value;
		for (; exit < exits_end && exit->at == i; exit++) {
			exit_one(store, (process_id)exit->value);
			amount = process_of(store, cells_site(table, 1)->process);
		}
		store->sites[i] = 0;
		if (id) {
			struct cells_cell cell = cells_cell(table, id);

			if (several)
				amount = process_of(store, cells_site(table, cell.site)->process);
			store->sites[i] = cell.site;
			if (op & 1)
				end_one(store, batch->first + i, id, batch->begins[i], cell.size,
					amount, &addresses);
			else
				begin_one(store, batch->first + i, id, cell.size, amount);
		}
		level_step(store, batch, i, time_ns, &jump);
	}
	store->ended = ends_block(batch, batch->count - 1) ? last->value + (batch->count - last->at)
							   : 0;
}

// ---- snapshots ----

static struct index_snapshot *new_snapshot(struct index_snapshots *snapshots,
					   const struct vault *vault, uint64_t step, uint32_t keys)
{
	*MEM_ADD(snapshots->list, snapshots->count, snapshots->capacity) =
		(struct index_snapshot){ .step = step, .at = vault->size, .keys = keys };
	return &snapshots->list[snapshots->count - 1];
}

// Cells have numbers in the order of first sight, so those that no step had yet are at the end.
// Where a block was begun, or an orphan freed, `begun` is not 0.
static uint32_t cells_seen(const struct index_store *store)
{
	size_t most = store->counts_capacity;

	while (most > 1 && store->counts[most - 1].begun == 0)
		most--;
	return (uint32_t)most;
}

// Counts by cell in groups, from cell 0 on.
static void put_counts(struct vault *vault, const struct index_count *counts, uint32_t keys)
{
	uint8_t out[BITS_GROUP_MAX + BITS_GROUP_SLACK];

	for (uint32_t first = 0; first < keys; first += BITS_GROUP) {
		uint64_t columns[2][BITS_GROUP] = { { 0 } };

		for (uint32_t i = first ? 0 : 1; i < BITS_GROUP && first + i < keys; i++) {
			columns[0][i] = counts[first + i].begun;
			columns[1][i] = counts[first + i].alive;
		}
		vault_append(vault, out, bits_put_group(out, columns, 2));
	}
}

static void snapshot_cells(struct index_store *store, uint32_t keys)
{
	struct vault *vault = &store->files->cells;
	struct index_snapshot *snapshot =
		new_snapshot(&store->files->cells_snapshots, vault, store->step, keys);

	put_counts(vault, store->counts, keys);
	snapshot->size = vault->size - snapshot->at;
}

// What a snapshot has of a site: its sums, and the size of its first cell.
struct site_sums {
	struct bits_sums sums;
	uint64_t size;
	bool met;
};

static inline void add_to_site(struct site_sums *site, const struct index_count *count,
			       uint64_t size)
{
	if (!site->met)
		site->size = size;
	site->met = true;
	site->sums.begun += count->begun;
	site->sums.alive += count->alive;
	site->sums.begun_bytes += count->begun * size;
	site->sums.alive_bytes += count->alive * size;
}

// Of sites [first, end), from those of their cells: some cells at a time, whose sites are fetched
// before they are added to.
static void sum_sites(const struct cells *cells, const struct index_count *counts, uint32_t keys,
		      uint32_t first, uint32_t end, struct site_sums *sites)
{
	enum { SOME_CELLS = 128 };

	ASSERT(first < end);
	memset(sites, 0, (end - first) * sizeof *sites);
	for (uint32_t from = 1, to; from < keys; from = to) {
		uint32_t found[SOME_CELLS], count = 0;

		to = keys - from < SOME_CELLS ? keys : from + SOME_CELLS;
		// Without a branch: which of them are of these sites is as good as random.
		for (uint32_t id = from; id < to; id++) {
			uint32_t site = cells_cell(cells, id).site - first;
			// Not of one before `first` either: the difference wraps to far above.
			bool is_here = site < end - first;

			mem_expect(&sites[is_here ? site : 0]);
			found[count] = id;
			count += is_here;
		}
		for (uint32_t i = 0; i < count; i++) {
			struct cells_cell cell = cells_cell(cells, found[i]);

			add_to_site(&sites[cell.site - first], &counts[found[i]], cell.size);
		}
	}
}

// A group of sites, `count` of which are there. Bytes are told as how they differ from what they
// were if all blocks had the size of the site's first cell: mostly they have.
static size_t put_sites(uint8_t *out, const struct site_sums *sites, uint32_t count)
{
	uint64_t columns[BITS_COLUMNS_MAX][BITS_GROUP] = { { 0 } };

	ASSERT(count > 0 && count <= BITS_GROUP);
	for (uint32_t i = 0; i < count; i++) {
		const struct bits_sums *sums = &sites[i].sums;
		uint64_t size = sites[i].size;

		columns[0][i] = sums->begun;
		columns[1][i] = sums->alive;
		columns[2][i] = bits_zigzag(sums->begun_bytes - sums->begun * size);
		columns[3][i] = bits_zigzag(sums->alive_bytes - sums->alive * size);
	}
	return bits_put_group(out, columns, BITS_COLUMNS_MAX);
}

// Sites' sums are made when they are needed, 131,072 at a time: that is cheaper than keeping them.
// Each time all cells are gone through. The marks after the groups are not in the snapshot's size.
// Returns how many sites there are.
static uint32_t snapshot_sites(const struct cells *cells, const struct index_count *counts,
			       uint32_t keys, uint64_t step, struct vault *vault,
			       struct index_snapshots *snapshots)
{
	enum { AT_ONCE = 1 << 17 };
	struct index_snapshot *snapshot;
	struct site_sums *sums;
	uint32_t sites = 1, *marks;
	uint8_t out[BITS_GROUP_MAX + BITS_GROUP_SLACK];

	for (uint32_t id = 1; id < keys; id++) {
		uint32_t site = cells_cell(cells, id).site;

		if (site >= sites)
			sites = site + 1;
	}
	sums = mem_resize(NULL, sites < AT_ONCE ? sites : AT_ONCE, sizeof *sums);
	snapshot = new_snapshot(snapshots, vault, step, sites);
	marks = mem_alloc(sites / BITS_MARK + (size_t)1, sizeof *marks);
	for (uint32_t id = 0; id < sites; id += BITS_GROUP) {
		uint32_t left = sites - id;

		if (id % AT_ONCE == 0)
			sum_sites(cells, counts, keys, id, left < AT_ONCE ? sites : id + AT_ONCE,
				  sums);
		if (id == 0)
			sums[0] = (struct site_sums){ 0 };
		if (id % BITS_MARK == 0)
			marks[id / BITS_MARK] = (uint32_t)(vault->size - snapshot->at);
		vault_append(vault, out,
			     put_sites(out, &sums[id % AT_ONCE],
				       left < BITS_GROUP ? left : BITS_GROUP));
	}
	snapshot->size = vault->size - snapshot->at;
	vault_append(vault, marks, (sites / BITS_MARK + (size_t)1) * sizeof *marks);
	MEM_FREE(marks, sums);
	return sites;
}

static uint32_t snapshot_sites_now(struct index_store *store, uint32_t keys)
{
	return snapshot_sites(store->table, store->counts, keys, store->step, &store->files->sites,
			      &store->files->sites_snapshots);
}

// In steps, to the next snapshot, where the last has so many keys.
static uint64_t distance(const struct index_shape *shape, uint32_t keys)
{
	uint64_t steps = (uint64_t)shape->snapshot_ratio * keys;

	return steps > shape->snapshot_steps ? steps : shape->snapshot_steps;
}

// The more there is to write, the farther snapshots are apart, so that their bytes stay a part of
// those of steps.
static void take_snapshots(struct index_store *store)
{
	uint32_t keys = 0;

	if (store->step >= store->cells_next || store->step >= store->sites_next)
		keys = cells_seen(store);
	if (store->step >= store->cells_next) {
		snapshot_cells(store, keys);
		store->cells_next = store->step + distance(&store->shape, keys);
	}
	if (store->step >= store->sites_next) {
		uint32_t sites = snapshot_sites_now(store, keys);

		store->sites_next = store->step + distance(&store->shape, 3 * sites);
	}
}

// A full block, or the last one: it is written, then counted, and the postings of its steps are
// kept until a chunk of them is full.
void index_store_add(struct index_store *store, const struct index_batch *batch)
{
	struct index_files *files = store->files;
	struct index_block_entry entry;

	ASSERT(batch->first == store->step);
	ASSERT(batch->count > 0 && batch->count <= 1u << store->shape.block_log2);
	ASSERT(batch->runs_count > 0 && batch->runs[0].at == 0);
	if (store->err.kind != ERR_NONE)
		return;
	MEM_ROOM(files->blocks, files->blocks_capacity, files->blocks_count + 1);
	put_times(store, batch, &entry);
	put_events(store, batch, &entry);
	files->blocks[files->blocks_count++] = entry;
	make_room(store, batch);
	count_steps(store, batch);
	index_sizes_write(store->sizes, files);
	store->step = batch->first + batch->count;
	take_snapshots(store);
	if (!store->postings)
		return;
	index_postings_add(store->postings, batch, store->sites);
	if (index_postings_full(store->postings))
		index_postings_write(store->postings, store->table, files);
}

// ---- what never ended ----

// Snapshots of what nothing ended have entries in place of steps: counts of the first 100,000
// blocks that live at the end, in the order of their beginnings.
static void snapshot_never(struct index_store *store)
{
	struct vault *vault = &store->files->never_cells;
	uint32_t keys = cells_seen(store);
	struct index_snapshot *snapshot =
		new_snapshot(&store->files->never_snapshots, vault, store->never_count, keys);

	put_counts(vault, store->never_counts, keys);
	snapshot->size = vault->size - snapshot->at;
	snapshot_sites(store->table, store->never_counts, keys, store->never_count,
		       &store->files->never_sites, &store->files->never_sites_snapshots);
	// Closer together than the others: each entry that is not in them is read.
	store->never_next = store->never_count + distance(&store->shape, keys / 4);
}

// The last snapshots, after the last step: what lives then is what nothing ended. From now on
// counts are of these blocks, in a table of their own that begins at 0.
void index_store_over(struct index_store *store)
{
	uint32_t keys = cells_seen(store);

	ASSERT(!store->never_counts);
	level_over(store);
	snapshot_cells(store, keys);
	snapshot_sites_now(store, keys);
	// Of all cells: of those that no step had yet there may be more than there are counts.
	if (store->counts_capacity < store->table->cells_count)
		index_store_counts(store, store->table->cells_count);
	store->never_counts =
		mem_alloc_table(store->counts_capacity + 1, sizeof *store->never_counts);
	store->never_values =
		mem_alloc((size_t)1 << store->shape.sparse_log2, sizeof *store->never_values);
}

// `begun` counts the blocks; `alive` has no meaning here and stays 0. What is counted lies all over
// memory, and is fetched ahead: so a block of them is counted at once, or what a snapshot needs.
static void count_never(struct index_store *store)
{
	enum { AHEAD = 16 };
	uint32_t block = 1u << store->shape.sparse_log2;

	ASSERT(store->never_count - store->never_counted <= block);
	for (; store->never_counted < store->never_count; store->never_counted++) {
		uint64_t at = store->never_counted, soon = at + AHEAD;

		if (soon < store->never_count)
			mem_expect(&store->never_counts[live_table_cell(
				store->never_values[soon % block])]);
		store->never_counts[live_table_cell(store->never_values[at % block])].begun++;
	}
}

void index_store_never(struct index_store *store, uint64_t value, uint64_t address)
{
	uint32_t block = 1u << store->shape.sparse_log2;

	ASSERT(store->never_counts);
	ASSERT(live_table_cell(value) < store->counts_capacity);
	store->never_values[store->never_count++ % block] = value;
	if (store->never_count % block == 0 || store->never_count >= store->never_next)
		count_never(store);
	if (store->never_count % block == 0)
		index_never_write(store->files, store->never_values, block);
	put_address(store, INDEX_OF_NEVER, address);
	if (store->never_count >= store->never_next)
		snapshot_never(store);
}

// ---- the end ----

// What is waiting for a block to be full is written as a shorter one, then the files are ended.
bool index_store_finish(struct index_store *store, struct err *err)
{
	struct index_files *files = store->files;
	uint32_t never = (uint32_t)store->never_count & ((1u << store->shape.sparse_log2) - 1);
	char name[24];

	if (store->postings)
		index_postings_write(store->postings, store->table, files);
	if (never > 0)
		index_never_write(files, store->never_values, never);
	for (unsigned i = 0; i < INDEX_LONGS && store->err.kind == ERR_NONE; i++)
		if (index_store_waiting(store, i) > 0)
			index_longs_write(files, i, store->longs[i], index_store_waiting(store, i));
	for (unsigned i = 0; i < INDEX_LEVELS && store->err.kind == ERR_NONE; i++)
		if (files->levels_blocks[i].entries % PACK_GROUP > 0)
			index_levels_write(
				files, i, store->levels[i],
				(uint32_t)(files->levels_blocks[i].entries % PACK_GROUP));
	for (unsigned i = 0; i < INDEX_ADDRESSES && store->err.kind == ERR_NONE; i++)
		if (index_store_waiting(store, i) > 0)
			index_addresses_write(files, i, store->addresses[i],
					      index_store_waiting(store, i));
	for (unsigned i = 0; i < INDEX_VAULTS; i++) {
		struct vault *vault = index_files_vault(files, i, name);

		if (vault->name[0] && !vault_finish(vault, err))
			return false;
	}
	if (store->err.kind != ERR_NONE) {
		*err = store->err;
		return false;
	}
	return true;
}

uint64_t index_store_bytes(const struct index_store *store)
{
	return store->counts_capacity * sizeof *store->counts + store->bytes_capacity +
	       store->processes_capacity * sizeof *store->of_process +
	       (store->postings ? (uint64_t)8 << store->shape.chunk_log2 : 0);
}
