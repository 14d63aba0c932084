// What nothing ended: sorted, at once or in runs that are merged; packed; and read again.
//
// For example three blocks of memory live at the end, begun at steps 10, 12 and 40, of the cells 3,
// 3 and 5. They are sorted by step, and their block of the file is two packed columns: 3, 3, 5 and
// 0, 2, 28, each step less the one before. In memory is where the block is and that its first step
// is 10, by which it is found.
#include "base/mem.h"
#include "base/radix.h"
#include "base/rising.h"
#include "engine/index/index_pair.h"
#include "engine/index/index_read.h"

enum { RUN_BUFFER = 1 << 15 };

// A block of what nothing ended: cells, then beginnings as differences, which rise.
void index_never_write(struct index_files *files, const uint64_t *values, uint32_t count)
{
	uint64_t *column = mem_resize(NULL, count, sizeof *column);
	uint8_t *bytes = mem_resize(NULL, 2 * pack_bytes_max(count), 1), *at;
	uint64_t last;

	ASSERT(count > 0);
	last = live_table_step(values[0]);
	for (uint32_t i = 0; i < count; i++)
		column[i] = live_table_cell(values[i]);
	at = pack_put(bytes, column, count);
	for (uint32_t i = 0; i < count; i++) {
		column[i] = live_table_step(values[i]) - last;
		last += column[i];
	}
	at = pack_put(at, column, count);
	*MEM_ADD(files->never_blocks, files->never_blocks_count, files->never_blocks_capacity) =
		(struct index_never_block){
			.at = files->never.size,
			.step = live_table_step(values[0]),
		};
	vault_append(&files->never, bytes, (size_t)(at - bytes));
	MEM_FREE(bytes, column);
}

static uint64_t block_size(const struct index *index)
{
	return UINT64_C(1) << index->shape.sparse_log2;
}

// How many entries a block has.
static size_t entries_in(const struct index *index, size_t block)
{
	uint64_t left = index->never_count - block * block_size(index);

	ASSERT(block * block_size(index) < index->never_count);
	return (size_t)(left < block_size(index) ? left : block_size(index));
}

static bool damaged(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: what nothing ended");
}

// One block of `count` values. False: it cannot be one. The column of cells is unpacked into
// `values`; that of steps comes after it, and is taken in groups, so that it needs no list of its
// own.
static bool unpack(const uint8_t *at, const uint8_t *end, uint64_t step, size_t count,
		   uint64_t steps_end, uint64_t *values)
{
	uint64_t steps[PACK_GROUP];

	if (!pack_take(&at, end, values, count))
		return false;
	for (size_t first = 0; first < count; first += PACK_GROUP) {
		size_t here = count - first < PACK_GROUP ? count - first : PACK_GROUP;

		if (!pack_take_group(&at, end, steps, (uint32_t)here))
			return false;
		for (size_t i = 0; i < here; i++) {
			step += steps[i];
			if (step >= steps_end || values[first + i] >> LIVE_TABLE_CELL_BITS)
				return false;
			values[first + i] = live_table_value(step, (uint32_t)values[first + i]);
		}
	}
	return at == end;
}

// The blocks [first, end), into `values`. They lie one after the other in the file and are read at
// once; where each begins is from the head, which is not trusted: a place outside of what was read,
// or after the next one's, is damage.
static bool read_blocks(struct index *index, size_t first, size_t end, uint64_t *values,
			struct err *err)
{
	const struct index_files *files = &index->files;
	const struct index_never_block *blocks = files->never_blocks;
	uint64_t at, until;
	uint8_t *bytes;
	bool ok;

	ASSERT(first < end && end <= files->never_blocks_count);
	at = blocks[first].at;
	until = end < files->never_blocks_count ? blocks[end].at : files->never.size;
	if (until < at || until > files->never.size)
		return damaged(err);
	bytes = mem_resize(NULL, (size_t)(until - at) + PACK_SLACK, 1);
	ok = vault_read(&index->files.never, at, bytes, (size_t)(until - at), err);
	for (size_t i = first; ok && i < end; i++) {
		uint64_t next = i + 1 < end ? blocks[i + 1].at : until;

		ok = blocks[i].at >= at && blocks[i].at <= next && next <= until &&
		     unpack(bytes + (blocks[i].at - at), bytes + (next - at), blocks[i].step,
			    entries_in(index, i), index->steps_end, values);
		values += block_size(index);
		if (!ok)
			damaged(err);
	}
	mem_free(bytes);
	return ok;
}

// Whole blocks are read, and what was asked for is copied out of them.
bool index_never_read(struct index *index, uint64_t first, size_t count, uint64_t *values,
		      struct err *err)
{
	uint64_t size = block_size(index);
	size_t block = (size_t)(first / size), end = (size_t)((first + count + size - 1) / size);
	uint64_t *whole;
	bool ok;

	ASSERT(first + count <= index->never_count);
	if (count == 0)
		return true;
	whole = mem_resize(NULL, (end - block) * (size_t)size, sizeof *whole);
	ok = read_blocks(index, block, end, whole, err);
	if (ok)
		memcpy(values, whole + first % size, count * sizeof *values);
	mem_free(whole);
	return ok;
}

// How many entries begin before a step: by the first steps of blocks, then in one block.
bool index_never_at(struct index *index, uint64_t before, uint64_t *entries, struct err *err)
{
	const struct index_files *files = &index->files;
	size_t low = RISING_BELOW(files->never_blocks, files->never_blocks_count, step, before);
	size_t count;
	uint64_t *values;
	bool ok;

	*entries = 0;
	if (low == 0)
		return true;
	*entries = (low - 1) * block_size(index);
	count = entries_in(index, low - 1);
	values = mem_resize(NULL, count, sizeof *values);
	ok = index_never_read(index, *entries, count, values, err);
	while (ok && count > 0 && live_table_step(values[count - 1]) >= before)
		count--;
	*entries += count;
	mem_free(values);
	return ok;
}

// What nothing ended, some of it at a time.
struct sorted {
	uint64_t *keys, *scratch; // by step: place in the lists below
	uint64_t *values, *addresses;
	size_t count, capacity;
};

enum { SORTED_BYTES = 4 * sizeof(uint64_t), PLACE_BITS = LIVE_TABLE_CELL_BITS };

static void sorted_init(struct sorted *sorted, size_t capacity)
{
	*sorted = (struct sorted){ .capacity = capacity };
	sorted->keys = mem_resize(NULL, capacity, sizeof *sorted->keys);
	sorted->scratch = mem_resize(NULL, capacity, sizeof *sorted->scratch);
	sorted->values = mem_resize(NULL, capacity, sizeof *sorted->values);
	sorted->addresses = mem_resize(NULL, capacity, sizeof *sorted->addresses);
}

static bool take_one(struct spill *spill, uint64_t *value, uint64_t *address)
{
	return spill_get(spill, value, sizeof *value) && spill_get(spill, address, sizeof *address);
}

// Take as many as there is room for, and put them into the order of their beginnings: no two begin
// at one step.
static void sorted_take(struct sorted *sorted, struct index_pair *pair)
{
	sorted->count = 0;
	while (sorted->count < sorted->capacity &&
	       take_one(&pair->never, &sorted->values[sorted->count],
			&sorted->addresses[sorted->count])) {
		uint64_t *value = &sorted->values[sorted->count];
		uint64_t step = index_pair_final(pair, live_table_step(*value));

		*value = live_table_value(step, live_table_cell(*value));
		// The step is sorted by, the place is carried: 8 bytes are moved in place of 24.
		sorted->keys[sorted->count] = step << PLACE_BITS | sorted->count;
		sorted->count++;
	}
	radix_sort(sorted->keys, sorted->scratch, sorted->count, PLACE_BITS);
}

static size_t place_of(const struct sorted *sorted, size_t i)
{
	ASSERT(i < sorted->count);
	return (size_t)(sorted->keys[i] & ((UINT64_C(1) << PLACE_BITS) - 1));
}

// A run that was written, and its next entry; value UINT64_MAX: there is none.
struct run {
	struct spill spill;
	uint64_t value, address;
};

static void run_next(struct run *run)
{
	if (!take_one(&run->spill, &run->value, &run->address))
		run->value = UINT64_MAX;
}

// The first entry is read back at once, so that the run is ready to be merged.
static bool run_write(struct run *run, const struct sorted *sorted, int directory, struct err *err)
{
	if (!spill_open(&run->spill, directory, RUN_BUFFER, err))
		return false;
	for (size_t i = 0; i < sorted->count; i++) {
		spill_put(&run->spill, &sorted->values[place_of(sorted, i)], sizeof(uint64_t));
		spill_put(&run->spill, &sorted->addresses[place_of(sorted, i)], sizeof(uint64_t));
	}
	spill_turn(&run->spill);
	run_next(run);
	return true;
}

// The step is in the upper bits of a value, and so values are in the order of steps. Runs are few,
// so each is looked at for every entry.
static void merge_runs(struct run *runs, size_t count, struct index_store *store)
{
	for (;;) {
		struct run *least = &runs[0];

		for (size_t i = 1; i < count; i++)
			if (runs[i].value < least->value)
				least = &runs[i];
		if (least->value == UINT64_MAX)
			return;
		index_store_never(store, least->value, least->address);
		run_next(least);
	}
}

// In the order of their beginnings, whatever memory there is: what fits is sorted, and if that is
// not all of it, written as a run; then the runs are merged. For example 10 million entries with
// room for 4: runs of 4, 4 and 2 million.
bool index_pair_never(struct index_pair *pair, struct index_store *store, uint64_t memory_bytes,
		      struct err *err)
{
	size_t chunk = memory_bytes / SORTED_BYTES + 1, runs_count;
	struct sorted sorted;
	struct run *runs;
	bool ok = true;

	spill_turn(&pair->never);
	if (chunk > pair->never_count)
		chunk = (size_t)pair->never_count + 1;
	if (chunk > (size_t)1 << PLACE_BITS)
		chunk = (size_t)1 << PLACE_BITS;
	runs_count = (size_t)(pair->never_count / chunk) + 1;
	runs = mem_alloc(runs_count, sizeof *runs);
	sorted_init(&sorted, chunk);
	for (size_t i = 0; i < runs_count && ok; i++) {
		sorted_take(&sorted, pair);
		ok = runs_count == 1 || run_write(&runs[i], &sorted, pair->directory, err);
	}
	for (size_t i = 0; i < sorted.count && runs_count == 1; i++)
		index_store_never(store, sorted.values[place_of(&sorted, i)],
				  sorted.addresses[place_of(&sorted, i)]);
	MEM_FREE(sorted.keys, sorted.scratch, sorted.values, sorted.addresses);
	if (ok && runs_count > 1)
		merge_runs(runs, runs_count, store);
	for (size_t i = 0; i < runs_count; i++) {
		ok = ok && (!runs[i].spill.fd || spill_ok(&runs[i].spill, err));
		spill_close(&runs[i].spill);
	}
	mem_free(runs);
	return ok && spill_ok(&pair->never, err);
}
