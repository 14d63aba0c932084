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

#include "base/mem.h"

enum { STRAY_PER_MILLE = 1 }; // of pairs that may lie too close: ends that were not seen

// `to` is a power of 2.
static uint64_t up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) & ~(to - 1);
}

// How the place of a block is found: by the allocator's rules; it is all of its mapping; by the
// least distance.
enum { CUT, WHOLE, DISTANT };

struct chunk_range {
	uint64_t start, end;
};

// Bytes before the block, what the whole is a multiple of, and the least that it has.
static struct chunk_cut cut_of_glibc(unsigned bits)
{
	return bits == 32 ? (struct chunk_cut){ 4, 16, 16 } : (struct chunk_cut){ 8, 16, 32 };
}

static struct chunk_cut cut_of_windows(unsigned bits)
{
	return bits == 32 ? (struct chunk_cut){ 8, 8, 16 } : (struct chunk_cut){ 8, 16, 16 };
}

// In a program of 64 bits with glibc a block of 0 to 24 bytes has 32, one of 25 has 48.
static uint64_t chunk_of(uint64_t size, const struct chunk_cut *cut)
{
	uint64_t chunk = up(size + cut->header, cut->unit);

	return chunk < cut->least ? cut->least : chunk;
}

// Whether the block is a language's own, in a mapping that is not glibc's.
static bool is_language(const struct chunk_block *block, const struct ranges *ranges)
{
	const struct range *range = block->in_heap ? ranges_find(ranges, block->address) : NULL;

	return range && range->owner != SPACE_MALLOC_HEAP && range->owner != SPACE_MALLOC_ARENA &&
	       range->owner != SPACE_MALLOC_LARGE;
}

// One in a thousand may be closer: ends that were not seen leave blocks that overlap with later
// ones.
static bool is_glibc(const struct chunk_extent *chunk_extent, const struct ranges *ranges)
{
	uint64_t close = 0;

	for (size_t i = 0; i + 1 < chunk_extent->count; i++)
		if (!is_language(&chunk_extent->blocks[i], ranges) &&
		    chunk_extent->blocks[i + 1].address - chunk_extent->blocks[i].address <
			    chunk_of(chunk_extent->blocks[i].size, &chunk_extent->cut))
			close++;
	return close * 1000 <= chunk_extent->count * STRAY_PER_MILLE;
}

// A large block of glibc's has its whole mapping, and more where its chunk is longer.
static void take_range(struct chunk_extent *chunk_extent, size_t i, const struct range *range)
{
	struct chunk_block *block = &chunk_extent->blocks[i];
	uint64_t end = block->address - chunk_extent->cut.header +
		       chunk_of(block->size, &chunk_extent->cut);
	bool added;

	ASSERT(i < chunk_extent->count && range->start < range->end);
	block->cut = WHOLE;
	*map_put(&chunk_extent->large, i, &added) = chunk_extent->ranges_count;
	*MEM_ADD(chunk_extent->ranges, chunk_extent->ranges_count, chunk_extent->ranges_capacity) =
		(struct chunk_range){ range->start, range->end > end ? range->end : end };
}

// `cuts`: the allocator's rules are known, but of what is a language's own.
// Decides for each block how its place is found. CUT is 0, what blocks have from the beginning.
static void moor(struct chunk_extent *chunk_extent, const struct ranges *ranges, bool cuts)
{
	for (size_t i = 0; i < chunk_extent->count; i++) {
		struct chunk_block *block = &chunk_extent->blocks[i];
		const struct range *range =
			chunk_extent->glibc ? ranges_find(ranges, block->address) : NULL;

		if (!cuts || (chunk_extent->glibc && is_language(block, ranges)))
			block->cut = DISTANT;
		else if (range && range->owner == SPACE_MALLOC_LARGE)
			take_range(chunk_extent, i, range);
	}
}

// Distances that are smaller than the block itself are of blocks whose ends were not seen.
static void find_least(struct chunk_extent *chunk_extent)
{
	for (size_t i = 0; i + 1 < chunk_extent->count; i++) {
		const struct chunk_block *block = &chunk_extent->blocks[i];
		uint64_t distance = block[1].address - block->address;
		bool added;
		uint64_t *known;

		if (block->cut != DISTANT)
			continue;
		known = map_put(&chunk_extent->least, block->size, &added);
		if (distance >= block->size && (added || distance < *known))
			*known = distance;
	}
}

// Called by present_take, which lays the list out in order of addresses.
static void put_block(void *item, const struct present_block *block)
{
	*(struct chunk_block *)item = (struct chunk_block){
		.address = block->address,
		.size = block->size,
		.stack = block->stack,
		.in_heap = block->heap != 0,
		.selected = block->selected,
		.inherited = block->inherited,
	};
}

// First whether it is glibc's, by all blocks, then how each is found, then the distances of the
// others.
void chunk_extent_init(struct chunk_extent *chunk_extent, struct present *present,
		       const struct reader *reader, process_id process)
{
	const struct ranges *ranges = space_ranges(present_space(present), process);
	bool windows = reader_is_windows(reader);
	unsigned bits = reader_process(reader, process)->bits;

	ASSERT(process < reader_processes_count(reader));
	*chunk_extent = (struct chunk_extent){
		.process = process,
		.cut = windows ? cut_of_windows(bits) : cut_of_glibc(bits),
	};
	chunk_extent->blocks = present_take(present, process, PRESENT_HEAP,
					    sizeof *chunk_extent->blocks, put_block,
					    &chunk_extent->count);
	chunk_extent->glibc = !windows && is_glibc(chunk_extent, ranges);
	moor(chunk_extent, ranges, windows || chunk_extent->glibc);
	find_least(chunk_extent);
}

void chunk_extent_fini(struct chunk_extent *chunk_extent)
{
	map_fini(&chunk_extent->least);
	map_fini(&chunk_extent->large);
	MEM_FREE(chunk_extent->blocks, chunk_extent->ranges);
	*chunk_extent = (struct chunk_extent){ 0 };
}

// Of a block whose cut is WHOLE.
static const struct chunk_range *range_of(const struct chunk_extent *chunk_extent, size_t i)
{
	return &chunk_extent->ranges[*map_find(&chunk_extent->large, i)];
}

// Blocks that are never neighbours say nothing of their rounding.
// A distance over twice the size and a page is to a block that merely comes next.
static uint64_t room_of(const struct chunk_extent *chunk_extent, uint64_t size)
{
	const uint64_t *known = map_find(&chunk_extent->least, size);
	uint64_t room = up(size, 16);

	return known && *known && *known < 2 * room + SPACE_PAGE ? *known : room;
}

uint64_t chunk_extent_start(const struct chunk_extent *chunk_extent, size_t i)
{
	const struct chunk_block *block = &chunk_extent->blocks[i];

	ASSERT(i < chunk_extent->count);
	if (block->cut == WHOLE)
		return range_of(chunk_extent, i)->start;
	return block->address - (block->cut == CUT ? chunk_extent->cut.header : 0);
}

// It ends where the next begins; a block whose end was not seen may be in another.
struct chunk_place chunk_extent_place(const struct chunk_extent *chunk_extent, size_t i)
{
	const struct chunk_block *block = &chunk_extent->blocks[i];
	struct chunk_place place = { .start = chunk_extent_start(chunk_extent, i) };
	uint64_t next = i + 1 < chunk_extent->count ? chunk_extent_start(chunk_extent, i + 1)
						    : UINT64_MAX;

	ASSERT(i < chunk_extent->count);
	if (block->cut == WHOLE)
		place.end = range_of(chunk_extent, i)->end;
	else if (block->cut == CUT)
		place.end = place.start + chunk_of(block->size, &chunk_extent->cut);
	else
		place.end = place.start + room_of(chunk_extent, block->size);
	place.end = place.end > next ? next : place.end;
	place.end = place.end < place.start ? place.start : place.end;
	return place;
}
