#include "base/radix.h"

#include <string.h>

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

void radix_sort(uint64_t *list, uint64_t *scratch, size_t count, unsigned shift)
{
	uint64_t *from = list, *to = scratch, *swap, all = 0;

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
