// base/crc32c.h: the checksum that RFC 3720 calls CRC32C, either way it is computed.
#include "base/crc32c.h"
#include "test/test.h"

#include <string.h>

static void check_sum(uint32_t expected, const void *bytes, size_t size)
{
	const uint8_t *guarded = test_guarded_copy(bytes, size);

	CHECK_EQ(expected, crc32c(0, guarded, size));
	CHECK_EQ(expected, crc32c_portable(0, guarded, size));
}

// RFC 3720, appendix B.4.
TEST(crc32c_gives_the_published_sums)
{
	uint8_t bytes[32];

	check_sum(0, "", 0);
	check_sum(0xe3069283, "123456789", 9);
	memset(bytes, 0, sizeof bytes);
	check_sum(0x8a9136aa, bytes, sizeof bytes);
	memset(bytes, 0xff, sizeof bytes);
	check_sum(0x62a8ab43, bytes, sizeof bytes);
	for (uint8_t i = 0; i < 32; i++)
		bytes[i] = i;
	check_sum(0x46dd794e, bytes, sizeof bytes);
	for (uint8_t i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	check_sum(0x113fdb5c, bytes, sizeof bytes);
}

TEST(crc32c_may_be_taken_in_pieces_and_at_any_alignment)
{
	uint8_t bytes[300];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 5);
	for (size_t from = 0; from < 9; from++) {
		size_t size = sizeof bytes - from;
		uint32_t whole = crc32c(0, bytes + from, size);

		CHECK_EQ(whole, crc32c_portable(0, bytes + from, size));
		for (size_t cut = 0; cut <= size; cut++) {
			uint32_t first = crc32c(0, bytes + from, cut);

			CHECK_EQ(whole, crc32c(first, bytes + from + cut, size - cut));
			CHECK_EQ(whole, crc32c_portable(first, bytes + from + cut, size - cut));
		}
	}
}

// Long ones are summed in three stretches at a time where the processor can.
TEST(crc32c_of_long_bytes_is_the_same_either_way)
{
	enum { MOST = 3 * 3072 + 100 };
	uint8_t bytes[MOST];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 31 + i / 7 + (i >> 9));
	for (size_t size = 3000; size <= MOST - 8; size += 61)
		for (size_t from = 0; from < 8; from += 3)
			CHECK_EQ(crc32c_portable((uint32_t)size, bytes + from, size),
				 crc32c((uint32_t)size, bytes + from, size));
}

TEST(crc32c_notices_every_flipped_bit)
{
	uint8_t bytes[64] = { 1, 2, 3 };
	uint32_t whole = crc32c(0, bytes, sizeof bytes);

	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK(crc32c(0, bytes, sizeof bytes) != whole);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
