#include "report/berths.h"

#include "base/map.h"
#include "base/mem.h"

enum { STRAY_PER_MILLE = 1 }; // of pairs that may lie too close: ends that were not seen

static uint64_t up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) & ~(to - 1);
}

// Bytes of a chunk of glibc's.
static uint64_t chunk_of(uint64_t size, unsigned bits)
{
	uint64_t header = bits == 32 ? 4 : 8;
	uint64_t least = bits == 32 ? 16 : 32;
	uint64_t chunk = up(size + header, 16);

	return chunk < least ? least : chunk;
}

static bool is_glibc(const struct berths *berths, unsigned bits)
{
	uint64_t close = 0;

	for (size_t i = 0; i + 1 < berths->count; i++)
		if (berths->blocks[i + 1].address - berths->blocks[i].address <
		    chunk_of(berths->blocks[i].size, bits))
			close++;
	return close * 1000 <= berths->count * STRAY_PER_MILLE;
}

static void moor_glibc(struct berths *berths, const struct space *space, process_id process,
		       unsigned bits)
{
	const struct ranges *ranges = space_ranges(space, process);
	uint64_t header = bits == 32 ? 4 : 8;

	for (size_t i = 0; i < berths->count; i++) {
		const struct present_block *block = &berths->blocks[i];
		const struct range *range = ranges_find(ranges, block->address);

		berths->starts[i] = block->address - header;
		berths->ends[i] = berths->starts[i] + chunk_of(block->size, bits);
		if (range && range->owner == SPACE_MALLOC_LARGE) {
			berths->starts[i] = range->start;
			if (range->end > berths->ends[i])
				berths->ends[i] = range->end;
		}
	}
}

static void moor_other(struct berths *berths)
{
	struct map least = { 0 }; // size -> the least distance to the next block

	for (size_t i = 0; i + 1 < berths->count; i++) {
		uint64_t distance = berths->blocks[i + 1].address - berths->blocks[i].address;
		bool added;
		uint64_t *known = map_put(&least, berths->blocks[i].size, &added);

		if (distance >= berths->blocks[i].size && (added || distance < *known))
			*known = distance;
	}
	for (size_t i = 0; i < berths->count; i++) {
		const struct present_block *block = &berths->blocks[i];
		const uint64_t *known = map_find(&least, block->size);
		uint64_t room = up(block->size, 16);

		// Blocks that are never neighbours say nothing of their rounding.
		if (known && *known && *known < 2 * room + SPACE_PAGE)
			room = *known;
		berths->starts[i] = block->address;
		berths->ends[i] = block->address + room;
	}
	map_fini(&least);
}

void berths_init(struct berths *berths, const struct present *present, process_id process,
		 unsigned bits)
{
	*berths = (struct berths){ 0 };
	berths->blocks = present_blocks(present, process, false, &berths->count);
	berths->starts = mem_alloc(berths->count + 1, sizeof *berths->starts);
	berths->ends = mem_alloc(berths->count + 1, sizeof *berths->ends);
	berths->glibc = is_glibc(berths, bits);
	if (berths->glibc)
		moor_glibc(berths, present_space(present), process, bits);
	else
		moor_other(berths);
	// A berth ends where the next begins; a block whose end was not seen may lie in another.
	for (size_t i = 0; i < berths->count; i++) {
		uint64_t next = i + 1 < berths->count ? berths->starts[i + 1] : UINT64_MAX;

		if (berths->ends[i] > next)
			berths->ends[i] = next;
		if (berths->ends[i] < berths->starts[i])
			berths->ends[i] = berths->starts[i];
	}
}

void berths_fini(struct berths *berths)
{
	mem_free(berths->blocks);
	mem_free(berths->starts);
	mem_free(berths->ends);
	*berths = (struct berths){ 0 };
}
