// What docs/format.md promises about numbers.
#include "test/test.h"
#include "wire/varint.h"

static void check_round_trip(uint64_t number, size_t expected_size)
{
	uint8_t bytes[VARINT_BYTES_MAX];
	uint64_t value = ~number;
	size_t size = varint_encode(number, bytes);
	const uint8_t *guarded = test_guarded_copy(bytes, size);

	CHECK_EQ(expected_size, size);
	CHECK_EQ(size, varint_decode(guarded, size, &value));
	CHECK_EQ(number, value);
}

TEST(varint_round_trips_around_every_change_of_size)
{
	check_round_trip(0, 1);
	for (int bits = 7; bits < 64; bits += 7) {
		uint64_t first_longer = UINT64_C(1) << bits;

		check_round_trip(first_longer - 1, (size_t)bits / 7);
		check_round_trip(first_longer, (size_t)bits / 7 + 1);
	}
	check_round_trip(UINT64_MAX, VARINT_BYTES_MAX);
}

TEST(varint_reads_no_further_than_the_number)
{
	const uint8_t bytes[] = { 0xac, 0x02, 0xff, 0xff };
	uint64_t value = 0;

	CHECK_EQ(2, varint_decode(bytes, sizeof bytes, &value));
	CHECK_EQ(300, value);
}

TEST(varint_refuses_every_truncation)
{
	uint8_t bytes[VARINT_BYTES_MAX];
	size_t size = varint_encode(UINT64_MAX, bytes);
	uint64_t value = 7;

	for (size_t cut = 0; cut < size; cut++)
		CHECK_EQ(0, varint_decode(test_guarded_copy(bytes, cut), cut, &value));
	CHECK_EQ(7, value);
}

TEST(varint_refuses_a_longer_way_to_say_zero)
{
	uint64_t value = 7;

	CHECK_EQ(0, varint_decode((const uint8_t[]){ 0x80, 0x00 }, 2, &value));
	CHECK_EQ(0, varint_decode((const uint8_t[]){ 0xff, 0x80, 0x00 }, 3, &value));
	CHECK_EQ(7, value);
}

TEST(varint_refuses_more_than_64_bits)
{
	uint8_t bytes[11] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x00 };
	uint64_t value = 7;

	CHECK_EQ(0, varint_decode(bytes, 10, &value));
	bytes[9] = 0x81;
	CHECK_EQ(0, varint_decode(bytes, 11, &value));
	CHECK_EQ(7, value);
}

TEST(varint_zigzag_keeps_small_magnitudes_small_and_round_trips)
{
	const int64_t numbers[] = { 0, -1, 1, -2, 2, INT64_MAX, INT64_MIN };
	const uint64_t codes[] = { 0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX };

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		CHECK_EQ(codes[i], varint_zigzag(numbers[i]));
		CHECK_EQ(numbers[i], varint_unzigzag(codes[i]));
	}
}
