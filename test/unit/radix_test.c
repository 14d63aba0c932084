// Numbers in order, whatever they are.
#include "base/mem.h"
#include "base/radix.h"
#include "test/test.h"

#include <string.h>

enum { MOST = 5000 };

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state ^ random_state >> 33;
}

// Random numbers of so many bits, sorted: each is at least the one before, above `shift`, and
// those that are equal there are in the order in which they came.
static void check(size_t count, unsigned bits, unsigned shift)
{
	uint64_t *list = mem_alloc(count + 1, sizeof *list);
	uint64_t *scratch = mem_alloc(count + 1, sizeof *scratch);
	uint64_t sum = 0, found = 0;

	for (size_t i = 0; i < count; i++) {
		list[i] = next_random() >> (64 - bits);
		if (shift)
			list[i] = list[i] >> shift << shift | i;
		sum += list[i] * list[i];
	}
	list[count] = 7;
	radix_sort(list, scratch, count, shift);
	for (size_t i = 0; i < count; i++) {
		found += list[i] * list[i];
		CHECK(i == 0 || list[i - 1] <= list[i]);
	}
	CHECK_EQ(sum, found);
	CHECK_EQ(7, list[count]);
	mem_free(list);
	mem_free(scratch);
}

TEST(numbers_of_any_width_are_sorted)
{
	for (unsigned bits = 1; bits <= 64; bits++)
		check(300, bits, 0);
	for (size_t count = 0; count < 5; count++)
		check(count, 64, 0);
	check(MOST, 64, 0);
}

TEST(what_is_equal_above_the_shift_stays_in_its_order)
{
	for (unsigned bits = 14; bits <= 64; bits++)
		check(MOST, bits, 13);
}

TEST(pairs_are_in_the_order_of_their_keys_and_equal_ones_stay_as_they_were)
{
	enum { COUNT = 5000 };
	struct radix_pair *list = mem_alloc(COUNT, sizeof *list);
	struct radix_pair *scratch = mem_alloc(COUNT, sizeof *scratch);

	for (unsigned shift = 0; shift < 64; shift += 7) {
		for (uint64_t i = 0; i < COUNT; i++)
			list[i] = (struct radix_pair){
				UINT64_C(0x7000000000000001) ^ next_random() % 900 << shift, i
			};
		radix_sort_pairs(list, scratch, COUNT);
		for (size_t i = 1; i < COUNT; i++) {
			CHECK(list[i - 1].key <= list[i].key);
			if (list[i - 1].key == list[i].key)
				CHECK(list[i - 1].value < list[i].value);
		}
	}
	radix_sort_pairs(list, scratch, 0);
	mem_free(list);
	mem_free(scratch);
}

// So many pairs with keys of `bits` random bits above `shift`, in two clusters far apart: each key
// is at least the one before, and all that were there are there still.
static void check_lean(size_t count, unsigned bits, unsigned shift)
{
	struct radix_pair *list = mem_alloc(count + 1, sizeof *list);
	uint8_t *seen = mem_alloc(count + 1, 1);
	uint64_t *keys = mem_alloc(count + 1, sizeof *keys);

	for (size_t i = 0; i < count; i++) {
		keys[i] = (next_random() >> (64 - bits) << shift) + (i % 3 ? UINT64_C(1) << 46 : 9);
		list[i] = (struct radix_pair){ keys[i], i };
	}
	list[count] = (struct radix_pair){ 7, 7 };
	radix_sort_pairs_lean(list, count);
	for (size_t i = 0; i < count; i++) {
		CHECK(i == 0 || list[i - 1].key <= list[i].key);
		CHECK_EQ(keys[list[i].value], list[i].key);
		CHECK(!seen[list[i].value]);
		seen[list[i].value] = 1;
	}
	CHECK_EQ(7, list[count].key);
	MEM_FREE(list, seen, keys);
}

TEST(millions_of_pairs_are_sorted_in_place)
{
	for (size_t count = 0; count < 5; count++)
		check_lean(count, 40, 0);
	check_lean(300000, 33, 4); // addresses
	check_lean(300000, 6, 20); // many are equal
	check_lean(100000, 64, 0);
	check_lean(60000, 1, 0);
}
