// From the lowest digit to the highest, 11 bits at a time, each pass keeping the order of the one
// before. For example, keys of 20 bits over 12 bits that only ride along (shift 12): all have their
// highest bit below 2^32, so two passes do, over bits 12 to 22 and 23 to 33, and equal keys stay in
// the order that they had. Where the last pass ends in `scratch`, the list is copied back.
#include "base/radix.h"

#include "base/mem.h"

#include <string.h>

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

// `all` says where the highest digit ends, so small numbers take few passes. Each pass counts, adds
// up where each digit begins, and moves.
void radix_sort(uint64_t *list, uint64_t *scratch, size_t count, unsigned shift)
{
	uint64_t *from = list, *to = scratch, *swap, all = 0;

	ASSERT(shift < 64 && (count == 0 || list != scratch));
	for (size_t i = 0; i < count; i++)
		all |= list[i];
	for (; shift < 64 && all >> shift; shift += DIGIT) {
		size_t starts[DIGITS] = { 0 }, sum = 0;

		for (size_t i = 0; i < count; i++)
			starts[from[i] >> shift & (DIGITS - 1)]++;
		for (size_t digit = 0; digit < DIGITS; digit++) {
			size_t here = starts[digit];

			starts[digit] = sum;
			sum += here;
		}
		for (size_t i = 0; i < count; i++)
			to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != list && count)
		memcpy(list, from, count * sizeof *list);
}

// As above. `differ` has the bits in which any two keys are not equal: passes go over these alone.
void radix_sort_pairs(struct radix_pair *list, struct radix_pair *scratch, size_t count)
{
	struct radix_pair *from = list, *to = scratch, *swap;
	uint64_t differ = 0;

	for (size_t i = 0; i < count; i++)
		differ |= list[i].key ^ list[0].key;
	for (unsigned shift = 0; shift < 64 && differ >> shift; shift += DIGIT) {
		size_t starts[DIGITS] = { 0 }, sum = 0;

		// Bits that all have are passed over.
		shift += (unsigned)__builtin_ctzll(differ >> shift);
		for (size_t i = 0; i < count; i++)
			starts[from[i].key >> shift & (DIGITS - 1)]++;
		for (size_t digit = 0; digit < DIGITS; digit++) {
			size_t here = starts[digit];

			starts[digit] = sum;
			sum += here;
		}
		for (size_t i = 0; i < count; i++)
			to[starts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != list && count)
		memcpy(list, from, count * sizeof *list);
}
