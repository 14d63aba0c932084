// Columns come back as they were written: numbers of all widths, few that are much larger, words by
// number. Bytes that are cut, or have a width that nobody writes, are refused.
#include "engine/index/pack.h"
#include "test/test.h"

enum { COUNT_MAX = 3 * PACK_GROUP };

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

// One number at a time they are the same; where the bytes are cut, that is said when they end.
static void check_cursor(const uint8_t *bytes, const uint8_t *end, const uint64_t *values,
			 size_t count)
{
	struct pack_cursor cursor = pack_cursor_open(bytes, end, (uint32_t)count);

	for (size_t i = 0; i < count; i++)
		CHECK_EQ(values[i], pack_cursor_next(&cursor));
	CHECK(!cursor.bad);
	CHECK(cursor.at == end);
	CHECK_EQ(0, pack_cursor_next(&cursor));
	CHECK(cursor.bad);
	cursor = pack_cursor_open(bytes, end - 1, (uint32_t)count);
	for (size_t i = 0; i < count; i++)
		(void)pack_cursor_next(&cursor);
	CHECK(cursor.bad);
}

// Returns how many bytes they take.
static size_t check_column(const uint64_t *values, size_t count)
{
	static uint8_t bytes[8 * PACK_GROUP_MAX];
	uint64_t found[COUNT_MAX];
	const uint8_t *at = bytes, *end = pack_put(bytes, values, count);

	CHECK((size_t)(end - bytes) <= pack_bytes_max(count));
	CHECK(pack_take(&at, end, found, count));
	CHECK(at == end);
	CHECK_BYTES(values, found, count * sizeof *values);
	at = bytes;
	for (size_t i = 0; i < count; i += PACK_GROUP)
		CHECK(pack_skip_group(&at, end,
				      (uint32_t)(count - i < PACK_GROUP ? count - i : PACK_GROUP)));
	CHECK(at == end);
	check_cursor(bytes, end, values, count);
	for (const uint8_t *cut = bytes; cut < end; cut++) {
		at = bytes;
		CHECK(!pack_take(&at, cut, found, count));
	}
	return (size_t)(end - bytes);
}

TEST(numbers_of_each_width_come_back)
{
	static const size_t counts[] = { 1, 2, 127, 128, 129, COUNT_MAX };
	uint64_t values[COUNT_MAX];

	for (unsigned width = 0; width <= 64; width++)
		for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
			for (size_t i = 0; i < counts[c]; i++)
				values[i] = width ? next_random() >> (64 - width) : 0;
			check_column(values, counts[c]);
		}
}

TEST(a_few_that_are_large_do_not_make_the_others_so)
{
	uint64_t values[PACK_GROUP];

	for (unsigned high = 5; high < 64; high++) {
		size_t size;

		for (size_t i = 0; i < PACK_GROUP; i++)
			values[i] = i % 16;
		values[7] = values[127] = UINT64_C(1) << high;
		size = check_column(values, PACK_GROUP);
		// 4 bits each, the head, two places and what is above.
		CHECK(size <= 3 + PACK_GROUP / 2 + 2 + 2 * 8);
	}
}

TEST(a_width_that_nobody_writes_is_refused)
{
	static uint8_t bytes[PACK_GROUP_MAX + PACK_SLACK];
	uint64_t found[PACK_GROUP];

	for (unsigned width = 0; width < PACK_PATCHED; width++) {
		const uint8_t *at = bytes;

		bytes[0] = (uint8_t)width;
		CHECK_EQ(width <= 56 || width == 64,
			 pack_take_group(&at, bytes + PACK_GROUP_MAX, found, PACK_GROUP));
	}
}

TEST(a_place_outside_of_the_group_is_refused)
{
	// Width 0, one is patched, by 8 bits, at place 5: of 5 numbers there is none.
	static const uint8_t bytes[4 + 1 + PACK_SLACK] = { PACK_PATCHED, 1, 8, 5, 77 };
	uint64_t found[PACK_GROUP];
	const uint8_t *at = bytes;

	CHECK(!pack_take_group(&at, bytes + 5, found, 5));
	at = bytes;
	CHECK(pack_take_group(&at, bytes + 5, found, 6));
	CHECK_EQ(77, found[5]);
	CHECK_EQ(0, found[4]);
}

TEST(words_have_numbers_in_order_of_their_first_appearance)
{
	static struct pack_words words;

	for (int turn = 0; turn < 3; turn++) {
		pack_words_clear(&words);
		for (uint32_t i = 0; i < PACK_WORDS_MAX; i++) {
			CHECK_EQ(i, pack_words_number(&words, i * UINT64_C(1000003) + 7));
			CHECK_EQ(i / 2, pack_words_number(&words, i / 2 * UINT64_C(1000003) + 7));
		}
		CHECK_EQ(PACK_WORDS_MAX, pack_words_number(&words, 1));
		CHECK_EQ(3, pack_words_number(&words, 3 * UINT64_C(1000003) + 7));
	}
}
