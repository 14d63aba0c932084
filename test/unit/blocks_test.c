// The table of live blocks behaves like a list that is searched from end to end.
#include "engine/blocks.h"
#include "test/test.h"

#include <stdlib.h>

TEST(blocks_an_empty_table_has_nothing)
{
	struct blocks blocks = { 0 };
	size_t at = 0;

	CHECK(!blocks_find(&blocks, 0));
	CHECK(!blocks_find(&blocks, 0x1000));
	CHECK(!blocks_next(&blocks, &at));
	blocks_fini(&blocks);
}

TEST(blocks_any_address_is_a_key)
{
	static const uint64_t addresses[] = { 0, 1, 16, UINT64_MAX, UINT64_MAX - 15, 1ull << 63 };
	enum { COUNT = sizeof addresses / sizeof *addresses };
	struct blocks blocks = { 0 };
	bool added;

	for (uint32_t i = 0; i < COUNT; i++) {
		struct block *block = blocks_put(&blocks, addresses[i], &added);

		CHECK(added);
		block->owner = i + 1;
		block->size = i * 10;
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		struct block *block = blocks_put(&blocks, addresses[i], &added);

		CHECK(!added);
		CHECK_EQ(i + 1, block->owner);
		CHECK_EQ(i * 10, block->size);
		CHECK(block == blocks_find(&blocks, addresses[i]));
	}
	CHECK_EQ(COUNT, blocks.count);
	blocks_fini(&blocks);
}

// Few addresses, so that chains form, wrap around and are closed again and again.
TEST(blocks_agree_with_a_list_through_a_long_random_life)
{
	enum { ADDRESSES = 700, STEPS = 200000 };
	static uint32_t list[ADDRESSES]; // 0: not there
	struct blocks blocks = { 0 };
	size_t count = 0;
	size_t at = 0;
	const struct block *each;

	srand(4711);
	for (uint32_t step = 1; step <= STEPS; step++) {
		unsigned which = (unsigned)rand() % ADDRESSES;
		uint64_t address = 0x7f0000000000 + which * 48ull;
		struct block *found = blocks_find(&blocks, address);

		CHECK_EQ(list[which] != 0, found != NULL);
		if (found)
			CHECK_EQ(list[which], found->owner);
		if (found && rand() % 2) {
			blocks_remove(&blocks, found);
			list[which] = 0;
			count--;
		} else if (!found) {
			bool added;

			blocks_put(&blocks, address, &added)->owner = step;
			CHECK(added);
			list[which] = step;
			count++;
		}
		CHECK_EQ(count, blocks.count);
	}
	while ((each = blocks_next(&blocks, &at))) {
		CHECK_EQ(list[(each->address - 0x7f0000000000) / 48], each->owner);
		count--;
	}
	CHECK_EQ(0, count);
	blocks_fini(&blocks);
}
