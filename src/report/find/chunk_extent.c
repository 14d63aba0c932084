// glibc has 8 bytes before a block and rounds the whole up to 16. For example, in a program of 64
// bits:
//
//     25 bytes at 0x1010    25 + 8 = 33, so 48: from 0x1008 to 0x1038
//     24 bytes at 0x1040    24 + 8 = 32: from 0x1038 to 0x1058. No gap
//
// If more than one pair in a thousand is closer than that, it is another allocator: then a size
// takes the least distance that any block of it has to the next one. Of blocks of 24 bytes at
// 0x1000, 0x1020 and 0x1060 that is 32.
//
// In a heap of Windows, 25 bytes at 0x1010 in a program of 64 bits take from 0x1008 to 0x1038 as
// well; in one of 32 bits from 0x1008 to 0x1030.
#include "report/find/chunk_extent.h"

#include "base/map.h"
#include "base/mem.h"

enum { STRAY_PER_MILLE = 1 }; // of pairs that may lie too close: ends that were not seen

static uint64_t up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) & ~(to - 1);
}

// How an allocator cuts: bytes before a block, what the whole is rounded up to, and the least.
struct cut {
	uint64_t header, unit, least;
};

static struct cut cut_of_glibc(unsigned bits)
{
	return bits == 32 ? (struct cut){ 4, 16, 16 } : (struct cut){ 8, 16, 32 };
}

static struct cut cut_of_windows(unsigned bits)
{
	return bits == 32 ? (struct cut){ 8, 8, 16 } : (struct cut){ 8, 16, 16 };
}

static uint64_t chunk_of(uint64_t size, const struct cut *cut)
{
	uint64_t chunk = up(size + cut->header, cut->unit);

	return chunk < cut->least ? cut->least : chunk;
}

// Whether the block is a language's own, in a mapping that is not glibc's.
static bool is_language(const struct present_block *block, const struct ranges *ranges)
{
	const struct range *range = block->heap ? ranges_find(ranges, block->address) : NULL;

	return range && range->owner != SPACE_MALLOC_HEAP && range->owner != SPACE_MALLOC_ARENA &&
	       range->owner != SPACE_MALLOC_LARGE;
}

static bool is_glibc(const struct chunk_extent *chunk_extent, const struct ranges *ranges,
		     const struct cut *cut)
{
	uint64_t close = 0;

	for (size_t i = 0; i + 1 < chunk_extent->count; i++)
		if (!is_language(&chunk_extent->blocks[i], ranges) &&
		    chunk_extent->blocks[i + 1].address - chunk_extent->blocks[i].address <
			    chunk_of(chunk_extent->blocks[i].size, cut))
			close++;
	return close * 1000 <= chunk_extent->count * STRAY_PER_MILLE;
}

// `glibc`: what is a language's own is left out, and a large block has its whole mapping.
static void moor_cut(struct chunk_extent *chunk_extent, const struct ranges *ranges,
		     const struct cut *cut, bool glibc)
{
	for (size_t i = 0; i < chunk_extent->count; i++) {
		const struct present_block *block = &chunk_extent->blocks[i];
		const struct range *range = ranges_find(ranges, block->address);

		if (glibc && is_language(block, ranges))
			continue;
		chunk_extent->starts[i] = block->address - cut->header;
		chunk_extent->ends[i] = chunk_extent->starts[i] + chunk_of(block->size, cut);
		if (glibc && range && range->owner == SPACE_MALLOC_LARGE) {
			chunk_extent->starts[i] = range->start;
			if (range->end > chunk_extent->ends[i])
				chunk_extent->ends[i] = range->end;
		}
	}
}

// `languages`: only what is a language's own.
static void moor_other(struct chunk_extent *chunk_extent, const struct ranges *ranges,
		       bool languages)
{
	struct map least = { 0 }; // size -> the least distance to the next block

	for (size_t i = 0; i + 1 < chunk_extent->count; i++) {
		uint64_t distance =
			chunk_extent->blocks[i + 1].address - chunk_extent->blocks[i].address;
		bool added;
		uint64_t *known;

		if (languages && !is_language(&chunk_extent->blocks[i], ranges))
			continue;
		known = map_put(&least, chunk_extent->blocks[i].size, &added);

		if (distance >= chunk_extent->blocks[i].size && (added || distance < *known))
			*known = distance;
	}
	for (size_t i = 0; i < chunk_extent->count; i++) {
		const struct present_block *block = &chunk_extent->blocks[i];
		const uint64_t *known = map_find(&least, block->size);
		uint64_t room = up(block->size, 16);

		if (languages && !is_language(block, ranges))
			continue;

		// Blocks that are never neighbours say nothing of their rounding.
		if (known && *known && *known < 2 * room + SPACE_PAGE)
			room = *known;
		chunk_extent->starts[i] = block->address;
		chunk_extent->ends[i] = block->address + room;
	}
	map_fini(&least);
}

void chunk_extent_init(struct chunk_extent *chunk_extent, struct present *present,
		       const struct reader *reader, process_id process)
{
	const struct ranges *ranges = space_ranges(present_space(present), process);
	bool windows = reader_is_windows(reader);
	unsigned bits = reader_process(reader, process)->bits;
	struct cut cut = windows ? cut_of_windows(bits) : cut_of_glibc(bits);

	*chunk_extent = (struct chunk_extent){ 0 };
	chunk_extent->blocks =
		present_take_blocks(present, process, PRESENT_HEAP, &chunk_extent->count);
	chunk_extent->starts =
		mem_alloc_table(chunk_extent->count + 1, sizeof *chunk_extent->starts);
	chunk_extent->ends = mem_alloc_table(chunk_extent->count + 1, sizeof *chunk_extent->ends);
	chunk_extent->glibc = !windows && is_glibc(chunk_extent, ranges, &cut);
	if (windows || chunk_extent->glibc)
		moor_cut(chunk_extent, ranges, &cut, !windows);
	if (!windows)
		moor_other(chunk_extent, ranges, chunk_extent->glibc);
	// A berth ends where the next begins; a block whose end was not seen may lie in another.
	for (size_t i = 0; i < chunk_extent->count; i++) {
		uint64_t next = i + 1 < chunk_extent->count ? chunk_extent->starts[i + 1]
							    : UINT64_MAX;

		if (chunk_extent->ends[i] > next)
			chunk_extent->ends[i] = next;
		if (chunk_extent->ends[i] < chunk_extent->starts[i])
			chunk_extent->ends[i] = chunk_extent->starts[i];
	}
}

void chunk_extent_fini(struct chunk_extent *chunk_extent)
{
	MEM_FREE(chunk_extent->blocks, chunk_extent->starts, chunk_extent->ends);
	*chunk_extent = (struct chunk_extent){ 0 };
}
