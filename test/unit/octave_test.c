// Classes of numbers, each twice as wide as the one before.
#include "test/test.h"
#include "view/octave.h"

TEST(octaves_meet_and_leave_nothing_out)
{
	CHECK_EQ(0, octave_least(0));
	for (uint32_t octave = 1; octave < OCTAVES; octave++) {
		CHECK_EQ(octave_most(octave - 1) + 1, octave_least(octave));
		CHECK_EQ(octave, octave_of(octave_least(octave)));
		CHECK_EQ(octave, octave_of(octave_most(octave)));
	}
	CHECK_EQ(UINT64_MAX, octave_most(OCTAVES - 1));
}

TEST(octaves_end_at_powers_of_two)
{
	CHECK_EQ(2, octave_of(2));
	CHECK_EQ(3, octave_of(3));
	CHECK_EQ(3, octave_of(4));
	CHECK_EQ(11, octave_of(1024));
	CHECK_EQ(12, octave_of(1025));
	CHECK_EQ(513, octave_least(11));
}
