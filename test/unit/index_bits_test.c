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

enum { STEPS = 1000, STRETCH_LOG2 = 6, FIRST = 1 << 20 };

// What `ops` and `begins` say is what comes back: of the whole block, and of some of its stretches.
static void check_block(const struct index_batch *batch, uint32_t kinds, bool numbers)
{
	struct index_events_work *work = calloc(1, sizeof *work);
	uint8_t *bytes = calloc(1, index_events_bytes_max(batch) + PACK_SLACK);
	uint32_t all[STEPS], some[STEPS], near_count, far_count, near_met = 0, far_met = 0;
	struct index_events_near near[STEPS];
	struct index_ended far[STEPS + 1];
	struct index_events_head head;
	uint64_t begins[STEPS];

	index_events_put(bytes, batch, work);
	memcpy(&head, bytes, sizeof head);
	CHECK_EQ(numbers, head.words_count > 0);
	CHECK(index_events_take_ops(bytes, &head, kinds, all, NULL, &near_count));
	CHECK_EQ(0, near_count);
	CHECK(index_events_take_ops(bytes, &head, kinds, all, near, &near_count));
	CHECK_BYTES(batch->ops, all, batch->count * sizeof *all);
	for (uint32_t from = 0; from < batch->count; from += 1 << STRETCH_LOG2)
		for (uint32_t count = 1; from + count <= batch->count; count += 97) {
			CHECK(index_events_take_some(bytes, &head, kinds, from, count, some));
			CHECK_BYTES(batch->ops + from, some, count * sizeof *some);
		}
	CHECK(index_events_take_begins(bytes, &head, all, batch->first, begins));
	CHECK(index_events_take_far(bytes, &head, all, batch->first, far, &far_count));
	for (uint32_t i = 0; i < batch->count; i++) {
		CHECK_EQ(batch->ops[i] & 1 ? batch->begins[i] : 0, begins[i]);
		if (!begins[i])
			continue;
		if (begins[i] >= batch->first &&
		    begins[i] >> STRETCH_LOG2 == (batch->first + i) >> STRETCH_LOG2) {
			CHECK_EQ(i, near[near_met].at);
			CHECK_EQ(begins[i], batch->first + near[near_met++].begin);
			continue;
		}
		CHECK_EQ(i, far[far_met].at);
		CHECK_EQ(begins[i], far[far_met].begin);
		CHECK_EQ(batch->ops[i] >> 1, far[far_met++].cell);
	}
	CHECK_EQ(near_count, near_met);
	CHECK_EQ(far_count, far_met);
	CHECK(!index_events_take_some(bytes, &head, 1, 0, batch->count, some));
	free(work);
	free(bytes);
}

// A block of random steps of so many kinds: ends are of what began in the same stretch, in another
// of the block, before the block, or of nothing. In order: the oldest ends first.
static void check_random(uint32_t kinds, uint32_t count, bool in_order)
{
	uint32_t ops[STEPS];
	uint64_t begins[STEPS] = { 0 };
	struct index_run jump = { 0, 1 };
	struct index_batch batch = {
		.first = FIRST,
		.count = count,
		.stretch_log2 = STRETCH_LOG2,
		.ops = ops,
		.begins = begins,
		.jumps = &jump,
		.jumps_count = 1,
	};
	uint32_t alive[STEPS], alive_count = 0;
	uint64_t state = 88172645463325252u;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t random, at;

		state = state * 6364136223846793005u + 1;
		random = (uint32_t)(state >> 33);
		ops[i] = (1 + random % (kinds - 1)) << 1;
		if (random % 64 < 4) {
			ops[i] |= 1;
			begins[i] = random % 64 < 2 ? 0 : 1 + random % (FIRST - 1);
		} else if (alive_count > 0 && random / 64 % 2) {
			at = in_order ? 0 : random / 128 % alive_count;
			begins[i] = FIRST + alive[at];
			ops[i] = ops[alive[at]] | 1;
			memmove(&alive[at], &alive[at + 1], (--alive_count - at) * sizeof *alive);
		} else {
			alive[alive_count++] = i;
		}
	}
	check_block(&batch, kinds + 1, kinds < 100);
}

TEST(a_block_comes_back_and_some_of_its_stretches)
{
	check_random(20, STEPS, false);
	check_random(20, STEPS, true);
	check_random(100000, STEPS, false);
	check_random(100000, STEPS - 37, true);
	for (uint32_t count = 1; count < 300; count++)
		check_random(4, count, count % 2);
}
