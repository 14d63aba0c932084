// Each address has a number of its own, however many there are.
#include "trace/spots.h"

#include "test/test.h"

// Addresses as allocators give them, those that have no slot, and any.
static uint64_t address_of(uint32_t number, int kind)
{
	uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	switch (kind) {
	case 0:
		return UINT64_C(0x7f0000000000) + number * UINT64_C(48);
	case 1:
		return number * (UINT64_C(1) << 28);
	case 2:
		return ~(uint64_t)number;
	default:
		return mixed ^ mixed >> 29;
	}
}

TEST(spots_are_given_in_order_and_found_again)
{
	enum { MORE = SPOTS_MAX + 1000 };
	static const uint32_t counts[] = { 10, MORE, 3, 20000 };
	struct spots spots = { 0 };

	for (int kind = 0; kind < 4; kind++) {
		for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
			spots_begin(&spots);
			for (int again = 0; again < 2; again++)
				for (uint32_t n = 0; n < counts[i]; n++) {
					uint64_t address = address_of(n, kind);
					uint32_t spot = n < SPOTS_MAX ? n : SPOTS_NONE;

					spots_expect(&spots, address);
					CHECK_EQ(spot, spots_of(&spots, address));
				}
		}
	}
	spots_fini(&spots);
}

TEST(spots_of_several_kinds_of_addresses_are_of_one_row)
{
	struct spots spots = { 0 };

	spots_begin(&spots);
	for (uint32_t n = 0; n < 4000; n++)
		CHECK_EQ(n, spots_of(&spots, address_of(n, (int)n % 4)));
	for (uint32_t n = 0; n < 4000; n++)
		CHECK_EQ(n, spots_of(&spots, address_of(n, (int)n % 4)));
	spots_begin(&spots);
	CHECK_EQ(0, spots_of(&spots, address_of(17, 1)));
	spots_fini(&spots);
}
