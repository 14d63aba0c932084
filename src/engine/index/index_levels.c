// Levels: a block of entries, packed and read again.
//
// A block is PACK_GROUP entries of one file (the last may have fewer), in seven columns (pack.h).
// An entry differs little from the one before, and its highest and lowest level from its last one.
// So of time, bytes and count at its end there are differences to the entry before (of the first
// one they are from 0), and of the highest and lowest level how far they are from that at the end.
// For example, after an entry that ended at 1,000 bytes one that rose to 1,480, fell to 960 and
// ended at 1,040 is +40, 440 above and 80 below: 48 bytes of memory are some 10 here.
#include "base/mem.h"
#include "engine/index/index_read.h"
#include "engine/index/pack.h"

#include <string.h>

enum { TIMES, BYTES, BYTES_ABOVE, BYTES_BELOW, COUNTS, COUNT_ABOVE, OVER, COLUMNS };

void index_levels_write(struct index_files *files, unsigned file, const struct index_level *list,
			uint32_t count)
{
	struct index_level_blocks *blocks = &files->levels_blocks[file];
	uint8_t bytes[COLUMNS * PACK_GROUP_MAX + PACK_SLACK], *at = bytes;
	uint64_t columns[COLUMNS][PACK_GROUP];
	struct index_level before = { 0 };

	ASSERT(count > 0 && count <= PACK_GROUP);
	for (uint32_t i = 0; i < count; i++) {
		const struct index_level *level = &list[i];
		uint64_t counts = level->count_end;

		columns[TIMES][i] = level->time_ns - before.time_ns;
		columns[BYTES][i] = bits_zigzag(level->bytes_end - before.bytes_end);
		columns[BYTES_ABOVE][i] = level->bytes_max - level->bytes_end;
		columns[BYTES_BELOW][i] = level->bytes_end - level->bytes_min;
		columns[COUNTS][i] = bits_zigzag(counts - before.count_end);
		columns[COUNT_ABOVE][i] = level->count_max - counts;
		columns[OVER][i] = level->over;
		before = *level;
	}
	for (unsigned i = 0; i < COLUMNS; i++)
		at = pack_put_group(at, columns[i], count);
	*MEM_ADD(blocks->list, blocks->count, blocks->capacity) = files->levels[file].size;
	vault_append(&files->levels[file], bytes, (size_t)(at - bytes));
}

static bool unpack(const uint8_t *at, const uint8_t *end, struct index_level *list, uint32_t count)
{
	uint64_t columns[COLUMNS][PACK_GROUP];
	struct index_level before = { 0 };

	for (unsigned i = 0; i < COLUMNS; i++)
		if (!pack_take_group(&at, end, columns[i], count))
			return false;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = before.bytes_end + bits_unzigzag(columns[BYTES][i]);
		uint64_t counts = before.count_end + bits_unzigzag(columns[COUNTS][i]);

		before = list[i] = (struct index_level){
			.time_ns = before.time_ns + columns[TIMES][i],
			.bytes_max = bytes + columns[BYTES_ABOVE][i],
			.bytes_min = bytes - columns[BYTES_BELOW][i],
			.bytes_end = bytes,
			.count_max = counts + columns[COUNT_ABOVE][i],
			.over = columns[OVER][i] != 0,
			.count_end = counts & INT64_MAX,
		};
	}
	return at == end;
}

// One block, as a whole. Its bytes end where the next block's begin.
static bool read_block(struct index *index, unsigned file, size_t block, struct index_level *list,
		       uint32_t count, struct err *err)
{
	const struct index_level_blocks *blocks = &index->files.levels_blocks[file];
	struct vault *vault = &index->files.levels[file];
	uint8_t bytes[COLUMNS * PACK_GROUP_MAX + PACK_SLACK];
	uint64_t at = blocks->list[block];
	uint64_t end = block + 1 < blocks->count ? blocks->list[block + 1] : vault->size;

	if (end < at || end - at > sizeof bytes - PACK_SLACK)
		return index_levels_damaged(err);
	return vault_read(vault, at, bytes, (size_t)(end - at), err) &&
	       (unpack(bytes, bytes + (end - at), list, count) || index_levels_damaged(err));
}

bool index_levels_damaged(struct err *err)
{
	return err_set(err, ERR_FORMAT, "levels of the index are damaged");
}

uint32_t index_levels_read(struct index *index, unsigned file, uint64_t first,
			   struct index_level list[PACK_GROUP], struct err *err)
{
	uint64_t entries = index->files.levels_blocks[file].entries;
	uint64_t left = entries - first / PACK_GROUP * PACK_GROUP;
	uint32_t count = left < PACK_GROUP ? (uint32_t)left : PACK_GROUP;
	uint32_t skip = (uint32_t)(first % PACK_GROUP);

	if (first >= entries) {
		index_levels_damaged(err);
		return 0;
	}
	if (!read_block(index, file, (size_t)(first / PACK_GROUP), list, count, err))
		return 0;
	memmove(list, list + skip, (count - skip) * sizeof *list);
	return count - skip;
}
