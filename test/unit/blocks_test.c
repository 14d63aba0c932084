// The table of live blocks behaves like a list that is searched from end to end.
#include "engine/replay/blocks.h"
#include "test/test.h"

#include <stdlib.h>
#include <string.h>

TEST(blocks_an_empty_table_has_nothing)
{
	struct blocks_cursor cursor = { 0 };
	struct blocks blocks = { 0 };
	struct block block;
	uint64_t size;

	CHECK(!blocks_find(&blocks, 0));
	CHECK(!blocks_find(&blocks, 0x1000));
	CHECK(!blocks_take(&blocks, 0, &block, &size));
	CHECK(!blocks_next(&blocks, &cursor));
	blocks_expect(&blocks, 0x1000);
	blocks_fini(&blocks);
}

TEST(blocks_any_address_is_a_key_and_any_size_is_kept)
{
	static const uint64_t addresses[] = { 0, 1, 16, UINT64_MAX, UINT64_MAX - 15, 1ull << 63 };
	static const uint64_t sizes[] = { 0, 1, UINT64_MAX, 1ull << 47, (1ull << 47) - 1, 12345 };
	enum { COUNT = sizeof addresses / sizeof *addresses };
	struct blocks blocks = { 0 };
	struct block ended;
	uint64_t size;
	bool added;

	for (uint32_t i = 0; i < COUNT; i++) {
		struct block *block = blocks_put(&blocks, addresses[i], &added);

		CHECK(added);
		block->owner = i + 1;
		block->site = i + 100;
		blocks_set_size(&blocks, block, sizes[i]);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		struct block *block = blocks_put(&blocks, addresses[i], &added);

		CHECK(!added);
		CHECK_EQ(i + 1, block->owner);
		CHECK_EQ(sizes[i], blocks_size(&blocks, block));
		CHECK(block == blocks_find(&blocks, addresses[i]));
	}
	CHECK_EQ(COUNT, blocks.count);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK(blocks_take(&blocks, addresses[i], &ended, &size));
		CHECK_EQ(i + 1, ended.owner);
		CHECK_EQ(i + 100, ended.site);
		CHECK_EQ(sizes[i], size);
		CHECK(!blocks_take(&blocks, addresses[i], &ended, &size));
	}
	CHECK_EQ(0, blocks.count);
	blocks_fini(&blocks);
}

// What was told last, and how many in all.
struct told {
	uint64_t address;
	size_t count;
	bool sorted;
};

static void hear(void *context, const struct block *block, uint64_t address)
{
	struct told *told = context;
	unsigned shift = told->sorted ? 0 : 16; // of unsorted ones, regions rise

	CHECK(block->owner != 0);
	CHECK(told->count == 0 || address >> shift > told->address >> shift ||
	      (!told->sorted && address >> shift == told->address >> shift));
	told->address = address;
	told->count++;
}

// Addresses `distance` bytes apart come and go, few and then many at a time, so that tables grow,
// are built anew, shrink and are given back again and again. `tight`: as if there were a million.
static void live_long(uint64_t distance, bool roomy, bool tight)
{
	enum { ADDRESSES = 5000, STEPS = 300000, TIDE = 40000, HINTS = 64 };
	const uint64_t base = 0x7f0000000000;
	static uint32_t list[ADDRESSES]; // 0: not there
	struct blocks_cursor cursor = { 0 };
	struct blocks blocks = { .roomy = roomy };
	struct blocks_hint hints[HINTS] = { 0 };
	const struct block *each;
	size_t count = 0;

	memset(list, 0, sizeof list);
	for (uint32_t step = 1; step <= STEPS; step++) {
		unsigned which = (unsigned)rand() % ADDRESSES;
		uint64_t address = base + which * distance;
		struct block *found = blocks_find(&blocks, address), ended;
		// Of this address now, or of any address at any time.
		struct blocks_hint *hint = &hints[(unsigned)rand() % HINTS];
		bool ebbs = step / TIDE % 2, added;

		blocks.tight = blocks.stepped = tight;
		CHECK_EQ(list[which] != 0, found != NULL);
		if (rand() % 2) {
			blocks_expect_region(&blocks, address);
			*hint = blocks_expect(&blocks, address);
		}
		if (found)
			CHECK_EQ(list[which], found->owner);
		if (found && (ebbs || rand() % 4 == 0)) {
			CHECK(blocks_take_at(&blocks, address, *hint, &ended));
			CHECK_EQ(list[which], ended.owner);
			CHECK_EQ(list[which] * 3ull, blocks_size(&blocks, &ended));
			list[which] = 0;
			count--;
		} else if (!found && (!ebbs || rand() % 64 == 0)) {
			found = blocks_put_at(&blocks, address, *hint, &added);
			CHECK(added);
			found->owner = step;
			blocks_set_size(&blocks, found, step * 3ull);
			list[which] = step;
			count++;
		}
		CHECK_EQ(count, blocks.count);
	}
	for (int sorted = 0; sorted < 2; sorted++) {
		struct told told = { .sorted = sorted };

		blocks_each(&blocks, sorted, hear, &told);
		CHECK_EQ(count, told.count);
	}
	while ((each = blocks_next(&blocks, &cursor))) {
		CHECK_EQ(list[(cursor.address - base) / distance], each->owner);
		count--;
	}
	CHECK_EQ(0, count);
	blocks_fini(&blocks);
}

TEST(blocks_agree_with_a_list_through_a_long_random_life)
{
	static const uint64_t distances[] = { 1, 8, 16, 48, 64, 1024, 4096, 65536, 1 << 20 };

	srand(4711);
	for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
		live_long(distances[i], false, false);
		live_long(distances[i], true, false);
		live_long(distances[i], false, true);
	}
}

// A program that goes through its address space keeps no memory of where it was.
TEST(blocks_that_ended_long_ago_take_no_room)
{
	enum { REGIONS = 20000, STEP = 1 << 16, SMALL = 256 };
	struct blocks blocks = { 0 };
	struct block ended;
	uint64_t size;
	bool added;

	for (uint64_t i = 0; i < REGIONS; i++) {
		blocks_put(&blocks, i * STEP, &added)->owner = 1;
		CHECK(blocks_take(&blocks, i * STEP, &ended, &size));
	}
	CHECK(blocks.capacity <= SMALL);
	blocks_fini(&blocks);
}

// While there are few, tables are kept roomy. What that took is not lost to the many.
static void live_many(uint64_t apart, uint64_t count, unsigned percent_most)
{
	struct blocks blocks = { 0 };
	struct block ended;
	uint64_t size;
	bool added;

	for (uint64_t at = 0; at < count * apart; at += apart)
		blocks_put(&blocks, at, &added)->owner = (uint32_t)(at / apart + 1);
	CHECK(blocks.slots * 100 <= blocks.count * percent_most);
	for (uint64_t at = 0; at < count * apart; at += apart) {
		CHECK(blocks_take(&blocks, at, &ended, &size));
		CHECK_EQ(at / apart + 1, ended.owner);
	}
	CHECK_EQ(0, blocks.count);
	blocks_fini(&blocks);
}

TEST(blocks_by_the_million_take_at_most_two_slots_each)
{
	live_many(48, 2200000, 200);
}

// 1,024 in a region are more than seven eighths of 1,024 slots, and need no 2,048.
TEST(blocks_a_power_of_two_apart_take_no_more_than_others)
{
	live_many(32, 8000000, 170);
	live_many(64, 8000000, 170);
}
