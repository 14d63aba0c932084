// From the lowest digit to the highest, 11 bits at a time, each pass keeping the order of the one
// before. For example, keys of 20 bits over 12 bits that only ride along (shift 12): all have their
// highest bit below 2^32, so two passes do, over bits 12 to 22 and 23 to 33, and equal keys stay in
// the order that they had. Where the last pass ends in `scratch`, the list is copied back.
#include "base/radix.h"

#include "base/mem.h"

#include <string.h>

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

// `differ` has the bits in which any two numbers are not equal: passes go over these alone. For
// example times of one cell, whose number is above them: no pass is about that.
void radix_sort(uint64_t *list, uint64_t *scratch, size_t count, unsigned shift)
{
	uint64_t *from = list, *to = scratch, *swap, differ = 0;

	ASSERT(shift < 64 && (count == 0 || list != scratch));
	for (size_t i = 0; i < count; i++)
		differ |= list[i] ^ list[0];
	for (; shift < 64 && differ >> shift; shift += DIGIT) {
		size_t starts[DIGITS] = { 0 }, sum = 0;

		shift += (unsigned)__builtin_ctzll(differ >> shift);
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
		// For example addresses that differ in bits 16 to 37: two passes, over 16 to 26 and
		// 27 to 37, where all 64 bits would be six.
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

// ---- in place ----

enum {
	LEAN_DIGIT = 8, // bits by which a long list is parted: so many places are written at once
	LEAN_DIGITS = 1 << LEAN_DIGIT,
	LEAN_COUNT = 1 << 14, // pairs of which one sort stays in the processor's cache
};

// Part a list by a digit: each pair is exchanged with the one at the next place of its digit until
// one comes that belongs here. `starts` becomes where each digit begins, and the end of the list.
static void part_pairs(struct radix_pair *list, size_t count, unsigned shift,
		       size_t starts[LEAN_DIGITS + 1])
{
	size_t next[LEAN_DIGITS];

	ASSERT(shift < 64);
	memset(starts, 0, (LEAN_DIGITS + 1) * sizeof *starts);
	for (size_t i = 0; i < count; i++)
		starts[(list[i].key >> shift & (LEAN_DIGITS - 1)) + 1]++;
	for (size_t digit = 0; digit < LEAN_DIGITS; digit++) {
		// `next` moves within a digit's part; what is in front of it is in its place for
		// good.
		next[digit] = starts[digit];
		starts[digit + 1] += starts[digit];
	}
	for (size_t digit = 0; digit < LEAN_DIGITS; digit++) {
		while (next[digit] < starts[digit + 1]) {
			struct radix_pair pair = list[next[digit]];
			size_t to = pair.key >> shift & (LEAN_DIGITS - 1);

			while (to != digit) {
				struct radix_pair other = list[next[to]];

				list[next[to]++] = pair;
				pair = other;
				to = pair.key >> shift & (LEAN_DIGITS - 1);
			}
			list[next[digit]++] = pair;
		}
	}
}

struct span {
	size_t first, count;
};

// From the highest digit down, but for parts that are short: each of these is sorted as above.
void radix_sort_pairs_lean(struct radix_pair *list, size_t count)
{
	struct radix_pair *scratch = mem_resize(NULL, LEAN_COUNT, sizeof *scratch);
	struct span *spans = NULL;
	size_t waiting = 0, capacity = 0;

	*MEM_ADD(spans, waiting, capacity) = (struct span){ 0, count };
	while (waiting > 0) {
		struct span span = spans[--waiting];
		struct radix_pair *part = list + span.first;
		size_t starts[LEAN_DIGITS + 1];
		uint64_t differ = 0;
		unsigned high;

		if (span.count <= LEAN_COUNT) {
			radix_sort_pairs(part, scratch, span.count);
			continue;
		}
		for (size_t i = 1; i < span.count; i++)
			differ |= part[i].key ^ part[0].key;
		if (!differ)
			continue;
		high = 63 - (unsigned)__builtin_clzll(differ);
		// The highest eight bits that differ. Parts of equal keys in these are sorted by
		// the bits below.
		part_pairs(part, span.count, high < LEAN_DIGIT ? 0 : high - (LEAN_DIGIT - 1),
			   starts);
		for (size_t digit = 0; digit < LEAN_DIGITS; digit++)
			if (starts[digit + 1] - starts[digit] > 1)
				*MEM_ADD(spans, waiting, capacity) =
					(struct span){ span.first + starts[digit],
						       starts[digit + 1] - starts[digit] };
	}
	MEM_FREE(spans, scratch);
}
