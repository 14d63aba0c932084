// What wire/counter.h promises about time, for guests of every width.
#include "test/test.h"
#include "wire/counter.h"

TEST(counter_scale_is_exact_wherever_the_result_fits)
{
	static const uint64_t values[] = { 0,
					   1,
					   2,
					   UINT32_MAX,
					   1ull << 32,
					   1ull << 33,
					   3ull << 31,
					   0x123456789abcdef,
					   UINT64_MAX,
					   1ull << 63,
					   0x9e3779b97f4a7c15,
					   1650124125,
					   26000000000 };
	size_t count = sizeof(values) / sizeof(*values);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			unsigned __int128 whole = (unsigned __int128)values[i] * values[k] >> 32;

			CHECK_EQ((uint64_t)whole, counter_scale(values[i], values[k]));
		}
}

TEST(counter_convert_gives_nanoseconds_since_the_last_beat)
{
	struct segment_clock clock = { .beats = 1 };

	clock.beat[1].count = 1000;
	clock.beat[1].ns = 500;
	clock.beat[1].rate = 1ull << 31; // two counts a nanosecond
	CHECK_EQ(500, counter_convert(&clock, 900));
	CHECK_EQ(500 + 4, counter_convert(&clock, 1008));
	CHECK_EQ(500 + (1ull << 40), counter_convert(&clock, 1000 + (1ull << 41)));
}
