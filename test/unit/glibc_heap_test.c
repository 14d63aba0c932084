// What launch/glibc_heap.h promises about blocks that were read: none is believed that cannot be.
#include "test/test.h"

#include "base/mem.h"
#include "launch/glibc_heap_linux.h"

#include <string.h>

// Two mappings that touch, and one apart. The last may not be written, as a program may have made
// memory of a block's.
static const char maps[] = "10000-20000 rw-p 00000000 00:00 0 [heap]\n"
			   "20000-30000 rw-p 00000000 00:00 0\n"
			   "50000-60000 r--p 00000000 00:00 0\n";

static size_t believed(const struct collect_block *blocks, size_t count)
{
	struct objects objects = { .text = mem_copy_text(maps), .text_size = sizeof(maps) - 1 };
	struct glibc_heap heap = { 0 };
	size_t left;

	for (size_t i = 0; i < count; i++)
		*MEM_ADD(heap.blocks, heap.count, heap.capacity) = blocks[i];
	glibc_heap_check(&heap, &objects);
	left = heap.count;
	CHECK_EQ(left != count, heap.why.length > 0);
	glibc_heap_fini(&heap);
	objects_fini(&objects);
	return left;
}

TEST(blocks_side_by_side_and_across_mappings_that_touch_are_believed)
{
	const struct collect_block blocks[] = {
		{ 0x50000, 0x10000 },
		{ 0x1f000, 0x2000 },
		{ 0x10010, 24 },
		{ 0x10028, 24 },
	};

	CHECK_EQ(4, believed(blocks, 4));
	CHECK_EQ(0, believed(blocks, 0));
}

TEST(of_blocks_one_over_another_none_is_believed)
{
	const struct collect_block over[] = { { 0x10100, 64 }, { 0x10010, 24 }, { 0x1013f, 64 } };
	const struct collect_block twice[] = { { 0x10100, 64 }, { 0x10100, 64 } };

	CHECK_EQ(0, believed(over, 3));
	CHECK_EQ(0, believed(twice, 2));
}

TEST(of_blocks_in_no_memory_none_is_believed)
{
	const struct collect_block nowhere[] = { { 0x10010, 24 }, { 0x30010, 24 } };
	const struct collect_block past[] = { { 0x2fff0, 24 } };
	const struct collect_block round[] = { { 0x5fff0, UINT64_MAX } };

	CHECK_EQ(0, believed(nowhere, 2));
	CHECK_EQ(0, believed(past, 1));
	CHECK_EQ(0, believed(round, 1));
}
