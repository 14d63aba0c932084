// engine/index_bits.h: sizes are told by their place among the last ones that differ.
#include "engine/index_bits.h"
#include "test/test.h"

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
