// The plain LZ77 of [MS-XCA]: its own examples (3.1), and what must be refused.
#include "import/xpress.h"
#include "test/test.h"

#include <string.h>

TEST(xpress_unpacks_literals)
{
	static const uint8_t packed[] = "\x3f\x00\x00\x00"
					"abcdefghijklmnopqrstuvwxyz";
	uint8_t out[26];

	CHECK(xpress_unpack(packed, sizeof packed - 1, out, sizeof out));
	CHECK(memcmp(out, "abcdefghijklmnopqrstuvwxyz", sizeof out) == 0);
}

TEST(xpress_unpacks_a_long_match_that_overlaps_itself)
{
	static const uint8_t packed[] = { 0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63,
					  0x17, 0x00, 0x0f, 0xff, 0x26, 0x01 };
	uint8_t out[300];

	CHECK(xpress_unpack(packed, sizeof packed, out, sizeof out));
	for (size_t i = 0; i < sizeof out; i++)
		CHECK_EQ("abc"[i % 3], out[i]);
}

TEST(xpress_refuses_what_is_cut_and_what_is_too_long)
{
	static const uint8_t packed[] = { 0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63,
					  0x17, 0x00, 0x0f, 0xff, 0x26, 0x01 };
	uint8_t out[300];

	for (size_t size = 0; size < sizeof packed; size++) {
		uint8_t *guarded = test_guarded_copy(packed, size);

		CHECK(!xpress_unpack(guarded, size, out, sizeof out));
	}
	CHECK(!xpress_unpack(packed, sizeof packed, out, 299));
}

TEST(xpress_refuses_a_match_in_front_of_the_beginning)
{
	static const uint8_t packed[] = { 0, 0, 0, 0x40, 0x61, 0x08, 0x00, 0, 0 };
	uint8_t out[8];

	CHECK(!xpress_unpack(packed, sizeof packed, out, sizeof out));
}
