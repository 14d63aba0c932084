// What nothing ended: sorted, at once or in runs that are merged; packed; and read again.
#include "base/mem.h"
#include "base/radix.h"
#include "engine/index/index_pair.h"
#include "engine/index/index_read.h"

enum { RUN_BUFFER = 1 << 15, STEP_MAX = 10 };

void index_never_write(struct index_files *files, const uint64_t *values, uint32_t count)
{
	uint8_t *bytes = mem_alloc(count + (size_t)1, sizeof(uint32_t) + STEP_MAX), *at = bytes;
	uint32_t *cells = mem_resize(NULL, count, sizeof *cells), all = 0, width = 1;

	for (uint32_t i = 0; i < count; i++)
		all |= cells[i] = live_table_cell(values[i]);
	while (all >> width)
		width++;
	*at++ = (uint8_t)width;
	bits_pack(at, cells, count, width);
	at += bits_packed_size(count, width);
	for (uint32_t i = 1; i < count; i++)
		at += bits_put_varint(at,
				      live_table_step(values[i]) - live_table_step(values[i - 1]));
	files->never_blocks = mem_grow(files->never_blocks, &files->never_blocks_capacity,
				       files->never_blocks_count + 1, sizeof *files->never_blocks);
	files->never_blocks[files->never_blocks_count++] = (struct index_never_block){
		.at = files->never.size,
		.step = live_table_step(values[0]),
	};
	vault_append(&files->never, bytes, (size_t)(at - bytes));
	mem_free(bytes);
	mem_free(cells);
}

static uint64_t block_size(const struct index *index)
{
	return UINT64_C(1) << index->shape.sparse_log2;
}

// How many entries a block has.
static size_t entries_in(const struct index *index, size_t block)
{
	uint64_t left = index->never_count - block * block_size(index);

	return (size_t)(left < block_size(index) ? left : block_size(index));
}

static bool damaged(struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: what nothing ended");
}

// One block of `count` values. False: it cannot be one.
static bool unpack(const uint8_t *bytes, const uint8_t *end, uint64_t step, size_t count,
		   uint64_t steps_end, uint64_t *values)
{
	unsigned width = bytes < end ? *bytes : 0;
	const uint8_t *cells = bytes + 1, *at;

	if (width == 0 || width > LIVE_TABLE_CELL_BITS ||
	    (size_t)(end - cells) < bits_packed_size((uint32_t)count, width))
		return false;
	at = cells + bits_packed_size((uint32_t)count, width);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			step += bits_take_varint(&at, end);
		if (at > end || step >= steps_end)
			return false;
		values[i] = live_table_value(step, bits_get(cells, i, width));
	}
	return at == end;
}

// The blocks [first, end), into `values`.
static bool read_blocks(struct index *index, size_t first, size_t end, uint64_t *values,
			struct err *err)
{
	const struct index_files *files = &index->files;
	const struct index_never_block *blocks = files->never_blocks;
	uint64_t at = blocks[first].at;
	uint64_t until = end < files->never_blocks_count ? blocks[end].at : files->never.size;
	uint8_t *bytes;
	bool ok;

	if (until < at || until > files->never.size)
		return damaged(err);
	bytes = mem_resize(NULL, (size_t)(until - at) + 1, 1);
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

bool index_never_read(struct index *index, uint64_t first, size_t count, uint64_t *values,
		      struct err *err)
{
	uint64_t size = block_size(index);
	size_t block = (size_t)(first / size), end = (size_t)((first + count + size - 1) / size);
	uint64_t *whole;
	bool ok;

	if (count == 0)
		return true;
	whole = mem_resize(NULL, (end - block) * (size_t)size, sizeof *whole);
	ok = read_blocks(index, block, end, whole, err);
	if (ok)
		memcpy(values, whole + first % size, count * sizeof *values);
	mem_free(whole);
	return ok;
}

bool index_never_at(struct index *index, uint64_t before, uint64_t *entries, struct err *err)
{
	const struct index_files *files = &index->files;
	size_t low = 0, high = files->never_blocks_count, count;
	uint64_t *values;
	bool ok;

	// The blocks whose first entry began before.
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (files->never_blocks[middle].step < before)
			low = middle + 1;
		else
			high = middle;
	}
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

bool index_pair_never(struct index_pair *pair, struct index_store *store, uint64_t memory_bytes,
		      struct err *err)
{
	size_t chunk = memory_bytes / 16 + 1, runs_count, count = 0;
	struct spill *runs;
	uint64_t *list, *scratch;
	uint64_t *heads;
	bool ok = true;

	spill_turn(&pair->never);
	if (chunk > pair->never_count)
		chunk = (size_t)pair->never_count + 1;
	runs_count = (size_t)(pair->never_count / chunk) + 1;
	list = mem_resize(NULL, chunk, sizeof *list);
	scratch = mem_resize(NULL, chunk, sizeof *scratch);
	runs = mem_alloc(runs_count, sizeof *runs);
	heads = mem_alloc(runs_count, sizeof *heads);
	for (size_t i = 0; i < runs_count && ok; i++) {
		for (count = 0; count < chunk && spill_get(&pair->never, &list[count], 8); count++)
			list[count] = live_table_value(
				index_pair_final(pair, live_table_step(list[count])),
				live_table_cell(list[count]));
		// No two begin at one step.
		radix_sort(list, scratch, count, LIVE_TABLE_CELL_BITS);
		if (runs_count == 1)
			break;
		ok = spill_open(&runs[i], pair->directory, RUN_BUFFER, err);
		for (size_t k = 0; ok && k < count; k++)
			spill_put(&runs[i], &list[k], 8);
		if (ok)
			spill_turn(&runs[i]);
		if (!ok || !spill_get(&runs[i], &heads[i], 8))
			heads[i] = UINT64_MAX;
	}
	for (size_t k = 0; k < count && runs_count == 1; k++)
		index_store_never(store, list[k]);
	mem_free(list);
	mem_free(scratch);
	while (ok && runs_count > 1) {
		size_t least = 0;

		for (size_t i = 1; i < runs_count; i++)
			if (heads[i] < heads[least])
				least = i;
		if (heads[least] == UINT64_MAX)
			break;
		index_store_never(store, heads[least]);
		if (!spill_get(&runs[least], &heads[least], 8))
			heads[least] = UINT64_MAX;
	}
	for (size_t i = 0; i < runs_count; i++) {
		ok = ok && (!runs[i].fd || spill_ok(&runs[i], err));
		spill_close(&runs[i]);
	}
	mem_free(runs);
	mem_free(heads);
	return ok && spill_ok(&pair->never, err);
}
