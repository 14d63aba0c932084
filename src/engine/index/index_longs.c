// Long lifetimes: a block of them, packed and read again.
//
// A block is 2^sparse_log2 lifetimes of one file (the last may have fewer), in order of their ends.
// Of each there are three columns (pack.h): how far its end is from the one before; how far
// its beginning is from that of the one before; and its cell, by a number where the block has few
// cells. What is freed in a sweep was often allocated in one, so beginnings are close. For example
// a table of a million nodes that is freed from its last to its first: ends are 1 apart and
// beginnings -1, all of one cell, and a lifetime takes 3 bits in place of 128.
//
//     column   ends; the first is 0, and in files->longs_blocks
//     column   beginnings, as zigzag; the first is from the first end
//     varint   how many cells the block has; 0: they are not numbered
//     column   they
//     column   cells, or their numbers
#include "base/mem.h"
#include "engine/index/index_read.h"
#include "engine/index/live_table.h"
#include "engine/index/pack.h"

// As numbers of a list of cells, or, where too many are different for that to pay (half), as they
// are: the list is empty then.
static uint8_t *put_cells(uint8_t *at, const struct index_long *list, uint32_t count,
			  uint64_t *column)
{
	struct pack_words *words = mem_alloc(1, sizeof *words);
	uint32_t i = 0;

	pack_words_clear(words);
	for (; i < count; i++) {
		column[i] = pack_words_number(words, live_table_cell(list[i].begin));
		if (column[i] == PACK_WORDS_MAX || words->count > count / 2 + 1)
			break;
	}
	if (i == count) {
		at += bits_put_varint(at, words->count);
		at = pack_put(at, words->words, words->count);
	} else {
		at += bits_put_varint(at, 0);
		for (i = 0; i < count; i++)
			column[i] = live_table_cell(list[i].begin);
	}
	mem_free(words);
	return pack_put(at, column, count);
}

// A block of long lifetimes: ends as differences, which rise; beginnings as differences, which do
// not; cells.
void index_longs_write(struct index_files *files, unsigned class, const struct index_long *list,
		       uint32_t count)
{
	struct index_long_blocks *blocks = &files->longs_blocks[class];
	uint64_t *column = mem_resize(NULL, count, sizeof *column);
	uint8_t *bytes = mem_resize(NULL, 4 * pack_bytes_max(count), 1), *at;
	uint64_t last;

	ASSERT(count > 0);
	last = list[0].end;
	*MEM_ADD(blocks->list, blocks->count, blocks->capacity) = (struct index_long_block){
		.at = files->longs[class].size,
		.end = list[0].end,
	};
	for (uint32_t i = 0; i < count; i++) {
		column[i] = list[i].end - last;
		last = list[i].end;
	}
	at = pack_put(bytes, column, count);
	last = list[0].end;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin = live_table_step(list[i].begin);

		column[i] = bits_zigzag(begin - last);
		last = begin;
	}
	at = pack_put(at, column, count);
	at = put_cells(at, list, count, column);
	vault_append(&files->longs[class], bytes, (size_t)(at - bytes));
	MEM_FREE(bytes, column);
}

uint32_t index_longs_in(const struct index *index, unsigned class, size_t block)
{
	uint64_t size = UINT64_C(1) << index->shape.sparse_log2;
	uint64_t left = index->files.longs_count[class] - block * size;

	return (uint32_t)(left < size ? left : size);
}

// As put_cells wrote them; a number that is past the list is damage.
static bool take_cells(const uint8_t **at, const uint8_t *end, uint64_t *column, uint32_t count)
{
	uint64_t words[PACK_WORDS_MAX];
	uint64_t words_count = bits_take_varint(at, end);

	if (words_count > PACK_WORDS_MAX || words_count > count ||
	    !pack_take(at, end, words, (size_t)words_count) || !pack_take(at, end, column, count))
		return false;
	for (uint32_t i = 0; words_count > 0 && i < count; i++) {
		if (column[i] >= words_count)
			return false;
		column[i] = words[column[i]];
	}
	return true;
}

// `column` has room for as many.
static bool unpack(const uint8_t *at, const uint8_t *end, uint64_t first, struct index_long *list,
		   uint64_t *column, uint32_t count)
{
	uint64_t last = first;

	if (!pack_take(&at, end, column, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		list[i].end = last += column[i];
	if (!pack_take(&at, end, column, count))
		return false;
	last = first;
	for (uint32_t i = 0; i < count; i++)
		list[i].begin = last += bits_unzigzag(column[i]);
	if (!take_cells(&at, end, column, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		list[i].begin = live_table_value(
			list[i].begin, (uint32_t)column[i] & ((1u << LIVE_TABLE_CELL_BITS) - 1));
	return at == end;
}

// A block's bytes end where the next block's begin.
bool index_longs_read(struct index *index, unsigned class, size_t block, struct index_long *list,
		      struct err *err)
{
	const struct index_long_blocks *blocks = &index->files.longs_blocks[class];
	struct vault *vault = &index->files.longs[class];
	uint32_t count = index_longs_in(index, class, block);
	uint64_t at, until;
	uint8_t *bytes;
	uint64_t *column;
	bool ok;

	ASSERT(block < blocks->count);
	at = blocks->list[block].at;
	until = block + 1 < blocks->count ? blocks->list[block + 1].at : vault->size;
	if (until < at || until > vault->size)
		return err_set(err, ERR_FORMAT, "the index is damaged: lifetimes");
	bytes = mem_resize(NULL, (size_t)(until - at) + PACK_SLACK, 1);
	column = mem_resize(NULL, count, sizeof *column);
	ok = vault_read(vault, at, bytes, (size_t)(until - at), err) &&
	     (unpack(bytes, bytes + (until - at), blocks->list[block].end, list, column, count) ||
	      err_set(err, ERR_FORMAT, "the index is damaged: lifetimes"));
	MEM_FREE(column, bytes);
	return ok;
}
