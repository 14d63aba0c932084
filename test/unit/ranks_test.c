// Medians and 99th percentiles in little memory are those of the sorted list.
#include "base/mem.h"
#include "base/ranks.h"
#include "test/test.h"

#include <stdlib.h>

enum { ROWS = 7, MOST = 3000 };

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return random_state ^ random_state >> 33;
}

// Numbers of a row: of all widths, of one, few different ones, or none.
static uint64_t number_of(size_t row)
{
	uint64_t dice = next_random();

	switch (row % 5) {
	case 0:
		return dice >> (8 + dice % 56);
	case 1:
		return 40000 + dice % 20000;
	case 2:
		return dice % 3 ? 0 : dice % 5 * 1000000007;
	case 3:
		return 123456789;
	}
	return dice >> 8;
}

struct list {
	uint64_t numbers[MOST];
	size_t count;
};

static bool give(const struct ranks *ranks, const struct list *lists)
{
	bool good = true;

	for (size_t row = 0; row < ROWS; row++)
		for (size_t i = 0; i < lists[row].count; i++)
			good &= ranks_add(ranks, i % 3 == 0, row, lists[row].numbers[i]);
	return good;
}

// As runs of equal numbers and rising ones, of sorted lists.
static bool give_runs(const struct ranks *ranks, const struct list *lists)
{
	bool good = true;

	for (size_t row = 0; row < ROWS; row++) {
		const uint64_t *numbers = lists[row].numbers;
		size_t count = lists[row].count, same = 0;

		while (same < count && numbers[same] == numbers[0])
			same++;
		good &= ranks_add_same(ranks, 0, row, count ? numbers[0] : 0, same / 3);
		good &= ranks_add_same(ranks, 1, row, count ? numbers[0] : 0, same - same / 3);
		good &= ranks_add_rising(ranks, row % 2, row, numbers + same, count - same);
	}
	return good;
}

// Returns the number of rounds.
static unsigned check_given(struct list *lists, size_t words, uint64_t highest,
			    bool (*give_all)(const struct ranks *ranks, const struct list *lists))
{
	struct ranks ranks;
	uint64_t most[ROWS];
	unsigned rounds = 0;

	for (size_t row = 0; row < ROWS; row++)
		most[row] = lists[row].count + row; // it may be less
	ranks_begin(&ranks, most, ROWS, highest, words);
	do {
		ranks_round(&ranks);
		CHECK(give_all(&ranks, lists));
		rounds++;
	} while (!ranks_close(&ranks));
	for (size_t row = 0; row < ROWS; row++) {
		struct list *list = &lists[row];
		size_t n = list->count;

		CHECK(!ranks_wants(&ranks, row));
		if (n)
			qsort(list->numbers, n, sizeof *list->numbers, mem_compare_u64);
		CHECK_EQ(n ? list->numbers[(n - 1) / 2] : 0, ranks_median(&ranks, row));
		CHECK_EQ(n ? list->numbers[(n - 1) * 99 / 100] : 0, ranks_high(&ranks, row));
	}
	ranks_end(&ranks);
	return rounds;
}

// However they are given.
static unsigned check(struct list *lists, size_t words, uint64_t highest)
{
	unsigned rounds = check_given(lists, words, highest, give);

	// Lists are sorted now.
	CHECK_EQ(rounds, check_given(lists, words, highest, give_runs));
	return rounds;
}

TEST(what_fits_is_found_in_one_round_and_what_does_not_in_few)
{
	static struct list lists[ROWS];

	for (unsigned turn = 0; turn < 40; turn++) {
		uint64_t highest = 0;
		unsigned rounds;

		for (size_t row = 0; row < ROWS; row++) {
			lists[row].count = turn % 4 == 3 ? next_random() % 4 : next_random() % MOST;
			for (size_t i = 0; i < lists[row].count; i++) {
				lists[row].numbers[i] = number_of(row);
				if (lists[row].numbers[i] > highest)
					highest = lists[row].numbers[i];
			}
		}
		CHECK_EQ(1, check(lists, ROWS * (MOST + ROWS), highest));
		rounds = check(lists, 2500, highest);
		CHECK(rounds <= 8);
		// Less than any row takes: one at a time.
		rounds = check(lists, 0, highest);
		CHECK(rounds >= 1 && rounds <= ROWS * 2 * 10);
	}
}

// One row of many numbers, after a sample: each `every`th of those that are above `low`. Returns
// the number of rounds.
static unsigned check_sampled(uint64_t count, uint64_t every, uint64_t low, size_t words,
			      uint64_t (*number)(uint64_t at))
{
	uint64_t *numbers = mem_alloc(count, sizeof *numbers), highest = 0;
	struct ranks ranks;
	unsigned rounds = 0;

	for (uint64_t i = 0; i < count; i++) {
		numbers[i] = number(i);
		highest = numbers[i] > highest ? numbers[i] : highest;
	}
	ranks_begin(&ranks, &count, 1, highest, words);
	do {
		ranks_round(&ranks);
		if (rounds++ == 0) {
			CHECK(ranks_guessable(&ranks));
			for (uint64_t i = 0; i < count; i += every)
				if (numbers[i] >= low)
					CHECK(ranks_add(&ranks, i / every % 2, 0, numbers[i]));
			ranks_guess(&ranks);
		}
		for (uint64_t i = 0; i < count; i++)
			CHECK(ranks_add(&ranks, i % 3 == 0, 0, numbers[i]));
	} while (!ranks_close(&ranks));
	CHECK_EQ(count, ranks_count(&ranks, 0));
	qsort(numbers, count, sizeof *numbers, mem_compare_u64);
	CHECK_EQ(numbers[(count - 1) / 2], ranks_median(&ranks, 0));
	CHECK_EQ(numbers[(count - 1) * 99 / 100], ranks_high(&ranks, 0));
	ranks_end(&ranks);
	mem_free(numbers);
	return rounds;
}

static uint64_t spread(uint64_t at)
{
	return at * 40503 % 1000003 * 1000;
}

static uint64_t mostly_zero(uint64_t at)
{
	return at % 3 ? 0 : spread(at);
}

static uint64_t late(uint64_t at)
{
	return at < 190000 ? at % 7 : spread(at);
}

static uint64_t halves(uint64_t at)
{
	return at % 2 ? 5000001 : 5000003;
}

static uint64_t ticks(uint64_t at)
{
	return at % 50 ? 5000000 + at * 40503 % 1009 : at % 1000;
}

TEST(a_sample_spares_the_second_round_and_a_wrong_one_does_no_harm)
{
	CHECK_EQ(1, check_sampled(200000, 16, 0, 1 << 17, spread));
	CHECK_EQ(1, check_sampled(200000, 16, 0, 1 << 17, mostly_zero));
	CHECK_EQ(1, check_sampled(200000, 16, 0, 1 << 17, late));
	// Without the lower half of the numbers, or nearly all of them; then of one alone.
	CHECK_EQ(2, check_sampled(200000, 16, 500000000, 1 << 17, spread));
	CHECK_EQ(2, check_sampled(200000, 16, 990000000, 1 << 17, spread));
	CHECK_EQ(2, check_sampled(200000, 200000, 0, 1 << 17, mostly_zero));
	// Few different numbers take no room, however many they are.
	CHECK_EQ(1, check_sampled(200000, 16, 0, 1 << 15, halves));
	CHECK_EQ(1, check_sampled(200000, 16, 0, 1 << 15, ticks));
	// No room for what is near the median, and none at all in the sample.
	CHECK_EQ(2, check_sampled(200000, 16, 0, 1 << 13, spread));
	CHECK_EQ(2, check_sampled(200000, 16, UINT64_MAX, 1 << 17, spread));
}

TEST(only_what_is_wanted_is_below_no_lowest)
{
	const uint64_t most[2] = { 1000, 1 };
	struct ranks ranks;

	ranks_begin(&ranks, most, 2, 1 << 20, 80);
	ranks_round(&ranks);
	CHECK_EQ(0, ranks_lowest(&ranks));
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(ranks_add(&ranks, 0, 0, 70000 + i * 100));
	CHECK(ranks_add(&ranks, 0, 1, 3));
	CHECK(!ranks_close(&ranks));
	ranks_round(&ranks);
	CHECK(ranks_lowest(&ranks) > 65536);
	CHECK(ranks_lowest(&ranks) <= 70000 + 499 * 100);
	ranks_end(&ranks);
}

TEST(more_numbers_than_was_said_are_refused)
{
	struct ranks ranks;
	const uint64_t most[1] = { 2 };

	ranks_begin(&ranks, most, 1, 100, 10);
	ranks_round(&ranks);
	CHECK(ranks_add(&ranks, 0, 0, 5));
	CHECK(ranks_add(&ranks, 1, 0, 7));
	CHECK(ranks_add(&ranks, 1, 0, 9));
	CHECK(!ranks_add(&ranks, 1, 0, 9));
	CHECK(ranks_close(&ranks));
	ranks_end(&ranks);
}

TEST(a_row_that_has_many_does_not_take_the_place_of_others)
{
	struct ranks ranks;
	const uint64_t most[2] = { UINT64_MAX, 2 };

	ranks_begin(&ranks, most, 2, 1000, 100);
	ranks_round(&ranks);
	CHECK(ranks_wants(&ranks, 0));
	CHECK(ranks_wants(&ranks, 1));
	CHECK(ranks_add(&ranks, 0, 0, 900));
	CHECK(!ranks_add(&ranks, 0, 0, UINT64_MAX)); // higher than the highest
	CHECK(ranks_add(&ranks, 1, 1, 3));
	while (!ranks_close(&ranks)) {
		ranks_round(&ranks);
		CHECK(ranks_add(&ranks, 0, 0, 900));
	}
	CHECK_EQ(900, ranks_median(&ranks, 0));
	CHECK_EQ(3, ranks_median(&ranks, 1));
	ranks_end(&ranks);
}
