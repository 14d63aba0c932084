// Sizes are told by their place among the last ones that differ. Numbers in groups come back as
// they were written, whatever their width, and bytes that are no group give none.
#include "engine/index/index_bits.h"
#include "engine/index/index_events.h"
#include "test/test.h"

#include <stdlib.h>

TEST(a_size_that_was_among_the_last_three_has_a_place_and_others_none)
{
	static const struct {
		uint64_t size;
		unsigned place;
	} steps[] = {
		{ 24, 0 },  { 24, 1 }, { 100, 0 },  { 24, 2 },  { 4096, 0 },
		{ 100, 3 }, { 24, 3 }, { 4096, 3 }, { 5, 0 },   { 100, 0 },
		{ 5, 2 },   { 0, 0 },  { 0, 1 },    { 100, 3 }, { UINT64_MAX, 0 },
	};
	struct bits_sizes wrote = { 0 }, read = { 0 };

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		uint64_t other = steps[i].place ? 77 : steps[i].size;

		CHECK_EQ(steps[i].place, bits_sizes_put(&wrote, steps[i].size));
		CHECK_EQ(steps[i].size, bits_sizes_take(&read, steps[i].place, other));
	}
}

TEST(sizes_of_0_are_known_from_the_beginning)
{
	struct bits_sizes wrote = { 0 }, read = { 0 };

	CHECK_EQ(1, bits_sizes_put(&wrote, 0));
	CHECK_EQ(0, bits_sizes_take(&read, 1, 77));
}

TEST(random_sizes_come_back)
{
	struct bits_sizes wrote = { 0 }, read = { 0 };
	uint64_t state = 88172645463325252u;

	for (int i = 0; i < 10000; i++) {
		uint64_t size;
		unsigned place;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		size = state % 6;
		place = bits_sizes_put(&wrote, size);
		CHECK(place <= BITS_SIZES);
		CHECK_EQ(size, bits_sizes_take(&read, place, place ? 77 : size));
	}
}

static void check_group(unsigned columns, unsigned width)
{
	uint64_t most = width ? UINT64_MAX >> (64 - width) : 0;
	uint64_t values[BITS_COLUMNS_MAX][BITS_GROUP] = { { 0 } };
	uint64_t found[BITS_COLUMNS_MAX][BITS_GROUP];
	uint8_t bytes[BITS_GROUP_MAX + BITS_GROUP_SLACK];
	size_t size;

	for (unsigned c = 0; c < columns; c++)
		for (unsigned i = 0; i < BITS_GROUP; i++)
			values[c][i] = i == 3 ? most : most / (c + i + 1);
	size = bits_put_group(bytes, values, columns);
	CHECK_EQ(columns * (1 + 2 * (width > 56 ? 64 : width)), size);
	CHECK_EQ(size, bits_take_group(bytes, size, found, columns));
	CHECK_BYTES(values, found, columns * sizeof *values);
	for (size_t left = 0; left < size; left++)
		CHECK_EQ(0, bits_take_group(bytes, left, found, columns));
}

TEST(numbers_of_a_group_come_back)
{
	for (unsigned columns = 1; columns <= BITS_COLUMNS_MAX; columns++)
		for (unsigned width = 0; width <= 64; width++)
			check_group(columns, width);
}

TEST(a_width_that_nobody_writes_is_no_group)
{
	uint8_t bytes[BITS_GROUP_MAX + BITS_GROUP_SLACK] = { 0 };
	uint64_t found[1][BITS_GROUP];

	for (unsigned width = 0; width <= UINT8_MAX; width++) {
		bool written = width <= 56 || width == 64;

		bytes[0] = (uint8_t)width;
		CHECK_EQ(written ? 1 + 2 * width : 0,
			 bits_take_group(bytes, BITS_GROUP_MAX, found, 1));
	}
}

// Some steps of a block are the same as those of the whole of it: of one that has few kinds, and of
// one that has too many to number them.
static void check_some(uint32_t kinds)
{
	enum { STEPS = 1000 };
	uint32_t ops[STEPS], all[STEPS], some[STEPS];
	uint64_t begins[STEPS] = { 0 };
	struct index_run jump = { 0, 1 };
	struct index_batch batch = {
		.first = 1,
		.count = STEPS,
		.ops = ops,
		.begins = begins,
		.jumps = &jump,
		.jumps_count = 1,
	};
	struct pack_words *words = calloc(1, sizeof *words);
	uint8_t *bytes = calloc(1, index_events_bytes_max(&batch) + PACK_SLACK);
	struct index_events_head head;
	uint64_t state = 88172645463325252u;

	for (uint32_t i = 0; i < STEPS; i++) {
		state = state * 6364136223846793005u + 1;
		ops[i] = (uint32_t)((state >> 33) % kinds) << 1;
	}
	index_events_put(bytes, &batch, words);
	memcpy(&head, bytes, sizeof head);
	CHECK_EQ(kinds<100, head.words_count> 0);
	CHECK(index_events_take_ops(bytes, &head, kinds, all));
	CHECK_BYTES(ops, all, sizeof ops);
	for (uint32_t from = 0; from < STEPS; from += 41)
		for (uint32_t count = 1; from + count <= STEPS; count += 97) {
			CHECK(index_events_take_some(bytes, &head, kinds, from, count, some));
			CHECK_BYTES(ops + from, some, count * sizeof *ops);
		}
	CHECK(!index_events_take_some(bytes, &head, 1, 0, STEPS, some));
	free(words);
	free(bytes);
}

TEST(some_steps_of_a_block_are_those_of_the_whole)
{
	check_some(20);
	check_some(100000);
}
