// The state of a build that is not finished, saved now and then and read when the build goes on.
//
// It holds all that the modules of a build have in memory: the table of live blocks, halves of
// reallocs, counts, what was not written yet, and the place in the trace. Files of the index that
// have grown since are cut back to what the state says. A state that does not fit its trace, or is
// damaged, is thrown away: the build begins again, which costs time and no more.
//
// For example, a build of 40 million events is stopped at event 25,000,123. The last state was
// saved at event 24,117,248: the place in the trace where its block begins, and each file's size as
// it was then (say 61,440,000 bytes of `events`, which has 63,001,600 by now). The next build cuts
// that file back to 61,440,000, puts what the tables held into memory, and reads the trace from
// that block on. It makes the same files, byte for byte, as one that was never stopped.
#include "engine/index/index_work.h"

#include "base/mem.h"

#include <string.h>

enum { VERSION = 16 };

static const char magic[8] = "TIDESTA\n";

// ---- writing ----

// Keys and values in any order: how many pairs there are, then 16 bytes each.
static void put_map(struct index_out *out, const struct map *map)
{
	uint64_t key, value;
	size_t at = 0;

	index_out_put_u64(out, map->count);
	while (map_next(map, &at, &key, &value)) {
		index_out_put_u64(out, key);
		index_out_put_u64(out, value);
	}
}

// A file that grows by whole pages has a checksum for each; what is behind the last whole one is
// in no file yet, and is saved here.
static void put_vault(struct index_out *out, const struct vault *vault)
{
	index_out_put_u64(out, vault->name[0] != 0);
	index_out_put_u64(out, vault->size);
	index_out_put_array(out, vault->sums, vault->sums_count, sizeof *vault->sums);
	index_out_put_array(out, vault->buffer, vault->filled, 1);
}

// The counts of all cells at the present step, how far snapshots have come, and what waits to fill
// a block: of each class of long lifetimes up to 2^sparse_log2 - 1 records.
static void put_store(struct index_out *out, const struct index_store *store)
{
	index_out_put_u64(out, store->step);
	index_out_put_u64(out, store->ended);
	index_out_put(out, &store->level, sizeof store->level);
	index_out_put(out, &store->peak, sizeof store->peak);
	index_out_put_u64(out, store->peak_edge);
	index_out_put_array(out, store->of_process, store->processes_capacity,
			    sizeof *store->of_process);
	index_out_put_array(out, store->counts, store->counts_capacity, sizeof *store->counts);
	index_out_put_u64(out, store->cells_next);
	index_out_put_u64(out, store->sites_next);
	index_out_put(out, store->building, sizeof store->building);
	index_out_put(out, store->building_count, sizeof store->building_count);
	for (unsigned i = 0; i < INDEX_LONGS; i++) {
		index_out_put_array(out, store->longs[i], index_store_waiting(store, i),
				    sizeof *store->longs[i]);
		index_out_put_array(out, store->addresses[i], index_store_waiting(store, i),
				    sizeof *store->addresses[i]);
	}
	for (unsigned i = 0; i < INDEX_LEVELS; i++)
		index_out_put_array(out, store->levels[i],
				    store->files->levels_blocks[i].entries % PACK_GROUP,
				    sizeof *store->levels[i]);
	index_postings_save(store->postings, out);
}

// The steps that do not fill a block yet, column by column.
static void put_feed(struct index_out *out, const struct index_feed *feed)
{
	const struct index_batch *batch = feed->open;

	index_out_put_u64(out, feed->step);
	index_out_put_u64(out, feed->last_time_ns);
	index_out_put_u64(out, feed->last_number);
	index_out_put_u64(out, batch->first);
	index_out_put_array(out, batch->ops, batch->count, sizeof *batch->ops);
	index_out_put_array(out, batch->begins, batch->count, sizeof *batch->begins);
	index_out_put_array(out, batch->runs, batch->runs_count, sizeof *batch->runs);
	index_out_put_array(out, batch->jumps, batch->jumps_count, sizeof *batch->jumps);
	index_out_put_array(out, batch->exits, batch->exits_count, sizeof *batch->exits);
	index_out_put_array(out, batch->addresses, batch->addresses_count,
			    sizeof *batch->addresses);
}

// Blocks that nothing ends any more, since their process is over: pairs of a live_table_value and
// an address, 16 bytes each, copied 4 KiB at a time.
static bool put_never(struct index_out *out, struct spill *never)
{
	uint64_t values[512];

	index_out_put_u64(out, never->size / (2 * sizeof *values));
	for (uint64_t at = 0; at < never->size; at += sizeof values) {
		uint64_t left = never->size - at;
		size_t size = left < sizeof values ? (size_t)left : sizeof values;

		if (!spill_copy(never, at, values, size))
			return false;
		index_out_put(out, values, size);
	}
	return true;
}

// What lives now. A space is a process and a heap in it, in order of first sight, since slots name
// their space by its number.
static bool put_pair(struct index_out *out, struct index_pair *pair)
{
	const struct live_table_slot *slot;
	size_t at = 0;

	index_out_put_u64(out, pair->spaces_count);
	for (size_t i = 0; i < pair->spaces_count; i++) {
		const struct index_space *space = &pair->spaces[i];

		index_out_put_u64(out, (uint64_t)space->process << 32 | space->heap);
		index_out_put_u64(out, (uint64_t)space->forked << 1 | space->over);
		put_map(out, &space->odd);
		put_map(out, &space->inherited);
	}
	index_out_put_u64(out, pair->inherited);
	index_out_put_u64(out, pair->lost);
	index_out_put_u64(out, pair->orphans);
	index_out_put_u64(out, pair->alive.count);
	while ((slot = live_table_next(&pair->alive, &at)) != NULL)
		index_out_put(out, slot, sizeof *slot);
	return put_never(out, &pair->never);
}

// What is needed to go on where the build was stopped. It is taken in the same order
// (index_work_load, take_all): a change here is another VERSION.
static bool put_all(struct index_out *out, struct index_work *work,
		    const struct index_identity *identity, const struct reader_place *place)
{
	struct index *index = &work->index;
	char name[24];

	index_out_put(out, magic, sizeof magic);
	index_out_put_u64(out, VERSION);
	index_out_put(out, identity, sizeof *identity);
	index_out_put(out, &index->shape, sizeof index->shape);
	index_out_put(out, place, sizeof *place);
	for (unsigned i = 0; i < INDEX_VAULTS; i++)
		put_vault(out, index_files_vault(&index->files, i, name));
	index_head_put_tables(out, &index->files);
	index_head_put_cells(out, &index->cells);
	index_head_put_marks(out, index);
	index_out_put_u64(out, index->duration_ns);
	index_out_put_u64(out, index->calls);
	put_map(out, &work->undone);
	index_out_put_array(out, index->exits, index->exits_count, sizeof *index->exits);
	index_out_put_array(out, index->destroys, index->destroys_count, sizeof *index->destroys);
	reader_damage(work->reader, &index->damage);
	index_head_put_moments(out, index);
	index_out_put_u64(out, work->vm.events);
	index_out_put_array(out, work->halves, work->threads_count, sizeof *work->halves);
	put_store(out, &work->store);
	put_feed(out, &work->feed);
	return put_pair(out, &work->pair);
}

// Blocks that live in temporary files cannot be kept: then there is no state, and the next build
// begins at the beginning. Threads are let run out first, so that nothing is half done.
void index_work_save(struct index_work *work)
{
	struct index_identity identity;
	struct reader_place place;
	struct index_out *out;
	struct err err = { 0 };

	if (work->pair.parts)
		return;
	index_ahead_rest(&work->ahead);
	place = index_ahead_place(&work->ahead);
	index_feed_rest(&work->feed);
	if (work->store.err.kind != ERR_NONE ||
	    !index_identify(&identity, work->trace_path, work->reader, place.at, &err))
		return;
	out = index_out_new(work->index.directory, "state");
	if (put_all(out, work, &identity, &place))
		index_out_end(out, &err);
	else
		index_out_drop(out);
}

// ---- reading ----

static bool bad(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the state of the index is damaged");
}

static void take_map(struct index_in *in, struct map *map)
{
	size_t count = index_in_take_count(in, 2 * sizeof(uint64_t));

	for (size_t i = 0; i < count; i++) {
		uint64_t key = index_in_take_u64(in);

		*map_put(map, key, NULL) = index_in_take_u64(in);
	}
}

// A file that was not open then has no entry; of the others the bytes that had not been written are
// in the state.
static bool take_vault(struct index_in *in, struct vault *vault, int directory, const char *name,
		       struct err *err)
{
	bool open = index_in_take_u64(in) != 0, ok;
	uint64_t size = index_in_take_u64(in);
	size_t sums_count, tail_size;
	uint32_t *sums = index_in_take_array(in, &sums_count, sizeof *sums);
	uint8_t *tail = index_in_take_array(in, &tail_size, 1);

	if (in->bad || !open) {
		MEM_FREE(sums, tail);
		return in->bad ? bad(err) : true;
	}
	ok = vault_resume(vault, directory, name, size, sums, sums_count, tail, tail_size, err);
	mem_free(tail);
	return ok;
}

// Added as when they were first met, so that they can be found again; a number that is not the
// next one says that the state is damaged.
static bool add_site(struct cells *cells, uint32_t id, const struct cells_site *site)
{
	return id == 0 || cells_add_site(cells, site) == id;
}

static bool add_cell(struct cells *cells, uint32_t id, const struct cells_cell *cell)
{
	return id == 0 || cells_add_cell(cells, cell->site, cell->size) == id;
}

// Into the store's own area, which can grow where it is. There is room for more cells than there
// are; these have counted nothing.
static void take_counts(struct index_in *in, struct index_store *store)
{
	size_t count;
	struct index_count *counts = index_in_take_array(in, &count, sizeof *counts);

	for (size_t i = store->table->cells_count; i < count; i++)
		in->bad |= counts[i].begun || counts[i].alive;
	if (count > 0) {
		index_store_counts(store, count);
		memcpy(store->counts, counts, count * sizeof *counts);
	}
	mem_free(counts);
}

// A list of lifetimes that wait for their block to be full, or of their addresses. NULL: none do.
static void *take_waiting(struct index_in *in, const struct index_store *store, unsigned class,
			  size_t size)
{
	size_t count = index_in_take_count(in, size);
	void *list;

	if (count != index_store_waiting(store, class))
		in->bad = true;
	if (in->bad || count == 0)
		return NULL;
	list = mem_alloc((size_t)1 << store->shape.sparse_log2, size);
	index_in_take(in, list, count * size);
	return list;
}

static void take_longs(struct index_in *in, struct index_store *store)
{
	for (unsigned i = 0; i < INDEX_LONGS; i++) {
		store->longs[i] = take_waiting(in, store, i, sizeof *store->longs[i]);
		store->addresses[i] = take_waiting(in, store, i, sizeof *store->addresses[i]);
		for (uint32_t k = 0; store->longs[i] && k < index_store_waiting(store, i); k++)
			if (live_table_cell(store->longs[i][k].begin) >= store->table->cells_count)
				in->bad = true;
		if (store->longs[i] && !store->files->longs[i].name[0])
			in->bad = true;
	}
}

// Into a list that has room for `most`. 0 also where it is bad.
static uint32_t take_list(struct index_in *in, void *list, size_t most, size_t size)
{
	size_t count = index_in_take_count(in, size);

	if (count > most)
		in->bad = true;
	if (!in->bad)
		index_in_take(in, list, count * size);
	return in->bad ? 0 : (uint32_t)count;
}

// Those that wait for their block to be full; of the others the files have as many as they say.
static void take_levels(struct index_in *in, struct index_store *store)
{
	for (unsigned i = 0; i < INDEX_LEVELS; i++) {
		const struct index_level_blocks *blocks = &store->files->levels_blocks[i];
		uint32_t waiting =
			take_list(in, store->levels[i], PACK_GROUP, sizeof *store->levels[i]);

		in->bad |= waiting != blocks->entries % PACK_GROUP ||
			   blocks->count != blocks->entries / PACK_GROUP ||
			   (blocks->entries > 0 && !store->files->levels[i].name[0]);
	}
}

// In the order of put_store. Of long lifetimes the files say how many wait (take_waiting).
static void take_store(struct index_in *in, struct index_store *store)
{
	store->step = index_in_take_u64(in);
	store->ended = index_in_take_u64(in);
	index_in_take(in, &store->level, sizeof store->level);
	index_in_take(in, &store->peak, sizeof store->peak);
	store->peak_edge = index_in_take_u64(in);
	store->of_process =
		index_in_take_array(in, &store->processes_capacity, sizeof *store->of_process);
	take_counts(in, store);
	store->cells_next = index_in_take_u64(in);
	store->sites_next = index_in_take_u64(in);
	index_in_take(in, store->building, sizeof store->building);
	index_in_take(in, store->building_count, sizeof store->building_count);
	take_longs(in, store);
	take_levels(in, store);
	if (!index_postings_load(store->postings, in, store->table))
		in->bad = true;
}

// There must be one for each lifetime that is long enough.
static void take_batch_addresses(struct index_in *in, const struct index_feed *feed)
{
	struct index_batch *batch = feed->open;
	unsigned log2 = feed->store->shape.long_log2;
	size_t count, longs = 0;

	mem_free(batch->addresses);
	batch->addresses = index_in_take_array(in, &count, sizeof *batch->addresses);
	batch->addresses_count = (uint32_t)count;
	batch->addresses_capacity = count;
	for (uint32_t i = 0; i < batch->count; i++)
		longs += (batch->ops[i] & 1) && batch->begins[i] &&
			 (batch->first + i - batch->begins[i]) >> log2;
	if (longs != count)
		in->bad = true;
}

// Whether a block of a cell began at a step. Of the steps that are not in the open block nothing
// more is known here.
static bool has_begun(const struct index_batch *batch, uint64_t step, uint32_t cell)
{
	return step < batch->first ||
	       (step - batch->first < batch->count && batch->ops[step - batch->first] == cell << 1);
}

// Of what lives, or ended.
static bool is_of_block(const struct index_work *work, uint64_t value)
{
	return live_table_cell(value) < work->index.cells.cells_count &&
	       has_begun(work->feed.open, live_table_step(value), live_table_cell(value));
}

// Whether steps name cells that there are, and ends a step before them that began one of theirs.
static bool are_steps(const struct index_batch *batch, uint32_t cells)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t begin = batch->begins[i];

		if (batch->ops[i] >> 1 >= cells)
			return false;
		if (batch->ops[i] & 1 && begin &&
		    (begin >= batch->first + i || !has_begun(batch, begin, batch->ops[i] >> 1)))
			return false;
	}
	return true;
}

// Whether places in the block rise.
static bool are_rising(const struct index_run *runs, uint32_t count, uint32_t steps)
{
	for (uint32_t i = 0; i < count; i++)
		if (runs[i].at >= steps || (i > 0 && runs[i].at <= runs[i - 1].at))
			return false;
	return true;
}

// Processes that end, each with a step of its own.
static void take_exits(struct index_in *in, struct index_batch *batch, size_t processes)
{
	size_t exits;

	mem_free(batch->exits);
	batch->exits = index_in_take_array(in, &exits, sizeof *batch->exits);
	batch->exits_count = (uint32_t)exits;
	batch->exits_capacity = exits;
	in->bad |= !are_rising(batch->exits, batch->exits_count, batch->count);
	for (size_t i = 0; i < exits; i++)
		in->bad |= batch->exits[i].value >= processes;
}

// The block that was being filled, with what goes with it. It has fewer steps than a block, and its
// runs and jumps begin at its first step, or there are none.
static void take_feed(struct index_in *in, struct index_feed *feed, uint32_t cells,
		      size_t processes)
{
	struct index_batch *batch = feed->open;

	feed->step = index_in_take_u64(in);
	feed->time_ns = feed->last_time_ns = index_in_take_u64(in);
	feed->number = feed->last_number = index_in_take_u64(in);
	batch->first = index_in_take_u64(in);
	batch->count = take_list(in, batch->ops, feed->full, sizeof *batch->ops);
	if (take_list(in, batch->begins, feed->full, sizeof *batch->begins) != batch->count ||
	    batch->count >= feed->full || feed->step != batch->first + batch->count ||
	    batch->first % feed->full != 0 || !are_steps(batch, cells))
		in->bad = true;
	batch->runs_count = take_list(in, batch->runs, feed->full, sizeof *batch->runs);
	batch->jumps_count = take_list(in, batch->jumps, feed->full, sizeof *batch->jumps);
	take_exits(in, batch, processes);
	take_batch_addresses(in, feed);
	if (!are_rising(batch->runs, batch->runs_count, batch->count) ||
	    !are_rising(batch->jumps, batch->jumps_count, batch->count) ||
	    (batch->count && (!batch->runs_count || !batch->jumps_count || batch->runs[0].at ||
			      batch->jumps[0].at)))
		in->bad = true;
}

// Spaces get their numbers in order, so one that comes out as another number was there twice:
// damage.
static void take_spaces(struct index_in *in, struct index_work *work)
{
	struct index_pair *pair = &work->pair;
	size_t count = index_in_take_count(in, 4 * sizeof(uint64_t));

	for (size_t i = 0; i < count && !in->bad; i++) {
		uint64_t key = index_in_take_u64(in), flags = index_in_take_u64(in);
		uint64_t address, value;

		if (key >> 32 >= work->processes_count) {
			in->bad = true;
			return;
		}
		if (index_pair_space(pair, (process_id)(key >> 32), (heap_id)key, flags & 2) != i) {
			in->bad = true;
			return;
		}
		pair->spaces[i].over = flags & 1;
		pair->over_count += flags & 1;
		take_map(in, &pair->spaces[i].odd);
		take_map(in, &pair->spaces[i].inherited);
		for (size_t at = 0; map_next(&pair->spaces[i].odd, &at, &address, &value);)
			in->bad |= !is_of_block(work, value);
	}
}

// What lived when the state was written, and what has ended by nothing. Each key and cell is held
// against what there is, as the rest of the index uses them for places.
static void take_pair(struct index_in *in, struct index_work *work)
{
	struct index_pair *pair = &work->pair;
	size_t count;

	take_spaces(in, work);
	pair->inherited = index_in_take_u64(in);
	pair->lost = index_in_take_u64(in);
	pair->orphans = index_in_take_u64(in);
	count = index_in_take_count(in, sizeof(struct live_table_slot));
	live_table_reserve(&pair->alive, count);
	for (size_t i = 0; i < count; i++) {
		struct live_table_slot slot;
		bool added;

		index_in_take(in, &slot, sizeof slot);
		if (slot.key == 0 || (slot.key >> 48) - 1 >= pair->spaces_count ||
		    !is_of_block(work, slot.value)) {
			in->bad = true;
			return;
		}
		live_table_put(&pair->alive, slot.key, &added)->value = slot.value;
	}
	count = index_in_take_count(in, 2 * sizeof(uint64_t));
	for (size_t i = 0; i < 2 * count; i++) {
		uint64_t word = index_in_take_u64(in);

		// One is a value, the next its address.
		in->bad |= i % 2 == 0 && !is_of_block(work, word);
		spill_put(&pair->never, &word, sizeof word);
	}
	pair->never_count = count;
}

// What arrays by process and thread hold grows with the trace.
static void take_counted(struct index_in *in, void *items, size_t count, size_t size)
{
	size_t found = index_in_take_count(in, size);

	if (found > count)
		in->bad = true;
	else if (found)
		index_in_take(in, items, found * size);
}

// In the order of put_all.
static bool take_all(struct index_in *in, struct index_work *work, const struct reader_place *place,
		     struct err *err)
{
	struct index *index = &work->index;
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++) {
		struct vault *vault = index_files_vault(&index->files, i, name);

		if (!take_vault(in, vault, index->directory, name, err))
			return false;
	}
	index_head_take_tables(in, &index->files);
	index_head_take_cells(in, work->reader, &index->cells, add_site, add_cell);
	index_head_take_marks(in, index);
	index->duration_ns = index_in_take_u64(in);
	index->calls = index_in_take_u64(in);
	take_map(in, &work->undone);
	take_counted(in, index->exits, index->exits_count, sizeof *index->exits);
	index->destroys = index_in_take_array(in, &index->destroys_count, sizeof *index->destroys);
	work->destroys_capacity = index->destroys_count;
	index_head_take_moments(in, index);
	work->undone_capacity = index->undone_count;
	work->vm.events = index_in_take_u64(in);
	take_counted(in, work->halves, work->threads_count, sizeof *work->halves);
	take_store(in, &work->store);
	take_feed(in, &work->feed, index->cells.cells_count, work->processes_count);
	take_pair(in, work);
	if (in->bad || work->store.step != work->feed.open->first ||
	    index->files.blocks_count != work->store.step >> index->shape.block_log2)
		return bad(err);
	reader_know_damage(work->reader, &index->damage);
	return reader_go(work->reader, place) || bad(err);
}

// They are added as if the items came again; where the trace is by now is known better.
static bool replay_calls(struct index_work *work, struct err *err)
{
	uint64_t events = work->vm.events;
	bool ok = vm_lives_replay(&work->vm, &work->index.files.calls, err);

	work->vm.events = events;
	return ok;
}

// A state is only believed if the trace up to its place is the one that it was made of: all of its
// blocks' headers are compared by a checksum.
bool index_work_load(struct index_work *work, struct err *err)
{
	struct index_identity identity, found;
	struct reader_place place;
	struct index_shape shape;
	struct index_in in;
	char start[sizeof magic];
	bool ok;

	if (!index_in_open(&in, work->index.directory, "state", err))
		return false;
	index_in_take(&in, start, sizeof start);
	ok = memcmp(start, magic, sizeof start) == 0 && index_in_take_u64(&in) == VERSION;
	index_in_take(&in, &identity, sizeof identity);
	index_in_take(&in, &shape, sizeof shape);
	index_in_take(&in, &place, sizeof place);
	ok = ok && !in.bad && memcmp(&shape, &work->index.shape, sizeof shape) == 0 &&
	     index_identify(&found, work->trace_path, work->reader, place.at, err) &&
	     memcmp(&identity, &found, sizeof found) == 0;
	if (!ok)
		err_set(err, ERR_FORMAT, "the state is of another trace, or another version");
	ok = ok && take_all(&in, work, &place, err);
	index_in_close(&in);
	ok = ok && replay_calls(work, err);
	// What was taken of the open block until then is not stored when this build is ended.
	if (!ok)
		work->feed.open->count = 0;
	return ok;
}
