// Classes of lifetimes, eight to an octave: 100 ns has log2 6, and its next three bits are 4 (100
// is between 96 and 103), so it is in class (6 - 2) * 8 + 4 = 36, whose floor is 12 << 3 = 96 ns.
// Below 8 ns each number has its own class.
#include "engine/window_series.h"

uint32_t window_lifetime_class(uint64_t lifetime_ns)
{
	unsigned log2;

	if (lifetime_ns < 8)
		return (uint32_t)lifetime_ns;
	log2 = 63 - (unsigned)__builtin_clzll(lifetime_ns);
	return (log2 - 2) * 8 + (uint32_t)(lifetime_ns >> (log2 - 3) & 7);
}

uint64_t window_lifetime_floor(uint32_t class_number)
{
	if (class_number < 8)
		return class_number;
	return (uint64_t)(8 + class_number % 8) << (class_number / 8 - 1);
}
