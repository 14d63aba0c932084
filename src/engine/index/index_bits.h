// index_bits: how numbers are in the files of a window index.
//
// Writing trusts its caller. Reading trusts no file: every taker is given where its bytes end, and
// gives 0 or false where something would go beyond. Little-endian, as the machines that this runs
// on.
//
//     const uint8_t *at = bytes, *end = bytes + size;
//     uint64_t count = bits_take_varint(&at, end);
//     uint64_t level = bits_unzigzag(bits_take_varint(&at, end));
//     if (at != end)      the index is damaged: `at` is end + 1 where something was missing
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// So many keys there are between two marks of a snapshot (struct index_snapshot).
enum { BITS_MARK = 1024 };

// Eight bytes from anywhere: where a number ends earlier, something must still be there to read.
// Any alignment.
static inline uint64_t bits_load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, 8);
	return word;
}

// A varint, as in the trace. Returns its bytes: 1 to 10. `out` has room for ten bytes.
static inline size_t bits_put_varint(uint8_t *out, uint64_t value)
{
	size_t size = 0;

	while (value >= 0x80) {
		out[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	out[size++] = (uint8_t)value;
	return size;
}

// Seven bits of each byte of a word, the lowest byte first, without the highest bit of each: 0xac
// 0x02 is 300.
static inline uint64_t bits_fold_varint(uint64_t word)
{
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

// Moves *at. At the end, or after ten bytes, it gives 0 and sets *at to `end` + 1, which is never
// read: compare *at with `end` when all is read.
static inline uint64_t bits_take_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value;
	unsigned shift = 7;

	if (*at >= end) {
		*at = end + 1;
		return 0;
	}
	value = *(*at)++;
	if (value < 0x80)
		return value;
	// Two to eight bytes at once, where so many follow: how many they are nothing predicts.
	if (end - *at >= 7) {
		uint64_t word = bits_load(*at - 1), last = ~word & UINT64_C(0x8080808080808080);

		if (last) {
			*at += (unsigned)__builtin_ctzll(last) / 8;
			return bits_fold_varint(word & (last ^ (last - 1)));
		}
	}
	value &= 0x7f;
	while (*at < end && shift < 64) {
		uint64_t byte = *(*at)++;

		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
		shift += 7;
	}
	*at = end + 1;
	return 0;
}

// The sizes of postings, one after the other: most are among the last few that differ, the latest
// first. `= { 0 }` is the beginning. For example 64, 64, 24, 64, 24 are the places 0 (and 64), 1, 0
// (and 24), 2, 2: two bits each, and only two sizes are written.
enum { BITS_SIZES = 3, BITS_SIZES_LOG2 = 2 };
struct bits_sizes {
	uint64_t recent[BITS_SIZES];
};

// Its place among them, from 1; 0: it is another, which is to be written. It is the latest now.
// Writer and reader begin at the same posting, and each posting goes through both: one left out
// changes the places of all later ones.
static inline unsigned bits_sizes_put(struct bits_sizes *sizes, uint64_t size)
{
	uint64_t first = sizes->recent[0], second = sizes->recent[1];

	if (size == first)
		return 1;
	sizes->recent[0] = size;
	sizes->recent[1] = first;
	if (size == second)
		return 2;
	if (size == sizes->recent[2]) {
		sizes->recent[2] = second;
		return 3;
	}
	sizes->recent[2] = second;
	return 0;
}

// The size at a place, or the one that was read for 0. `place` is at most BITS_SIZES, which two
// bits hold; `other` is looked at for 0 alone.
static inline uint64_t bits_sizes_take(struct bits_sizes *sizes, unsigned place, uint64_t other)
{
	uint64_t size = place ? sizes->recent[place - 1] : other;

	if (place != 1) {
		if (place != 2)
			sizes->recent[2] = sizes->recent[1];
		sizes->recent[1] = sizes->recent[0];
		sizes->recent[0] = size;
	}
	return size;
}

// Differences with a sign as small numbers: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4.
static inline uint64_t bits_zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static inline uint64_t bits_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

// What is summed up of a site at an edge: how many of its blocks began before it, and how many of
// them no call has ended by then; and the same in bytes.
struct bits_sums {
	uint64_t begun, alive, begun_bytes, alive_bytes;
};

// A group: numbers of BITS_GROUP keys that follow each other, in columns (counts, bytes). A byte
// for each column, how many bits its numbers have (0 to 56, or 64); then the columns, two bytes for
// each bit. For example 16 counts below 32 take 1 + 10 bytes, and 16 that are all 0 take the byte
// alone.
//
// The slack is for bits_load: the last number may begin in the last byte, and eight are read there.
enum { BITS_GROUP = 16, BITS_COLUMNS_MAX = 4, BITS_GROUP_SLACK = 8 };
enum { BITS_GROUP_MAX = BITS_COLUMNS_MAX * (1 + BITS_GROUP * 8) };

// How many bits the largest of a column has; 57 to 63 are not used.
static inline unsigned bits_group_width(const uint64_t values[BITS_GROUP])
{
	uint64_t all = 0;
	unsigned width;

	for (unsigned i = 0; i < BITS_GROUP; i++)
		all |= values[i];
	width = all ? 64 - (unsigned)__builtin_clzll(all) : 0;
	// So that a number is within 8 bytes, wherever it begins.
	return width > 56 ? 64 : width;
}

// `out` has room for BITS_GROUP_MAX + BITS_GROUP_SLACK bytes. Returns how many they are. `count`
// columns, at most BITS_COLUMNS_MAX; the slack is cleared, and need not be kept.
static inline size_t bits_put_group(uint8_t *out, uint64_t columns[][BITS_GROUP], unsigned count)
{
	size_t size = count;

	memset(out, 0, BITS_GROUP_MAX + BITS_GROUP_SLACK);
	for (unsigned c = 0; c < count; c++) {
		unsigned width = bits_group_width(columns[c]);

		out[c] = (uint8_t)width;
		for (unsigned i = 0; i < BITS_GROUP; i++) {
			uint8_t *at = out + size + i * width / 8;
			uint64_t word = bits_load(at) | columns[c][i] << i * width % 8;

			memcpy(at, &word, 8);
		}
		size += width * (BITS_GROUP / 8);
	}
	return size;
}

// Of `left` bytes, after which BITS_GROUP_SLACK more may be read. Returns how many the group has;
// 0: none can be so. Only widths and lengths are checked: the numbers can be any.
static inline size_t bits_take_group(const uint8_t *at, size_t left, uint64_t columns[][BITS_GROUP],
				     unsigned count)
{
	size_t size = count;

	for (unsigned c = 0; c < count; c++) {
		unsigned width = c < left ? at[c] : UINT8_MAX;
		uint64_t mask = width && width <= 64 ? UINT64_MAX >> (64 - width) : 0;

		if (width > 64 || (width > 56 && width < 64) ||
		    left < size + width * (BITS_GROUP / 8))
			return 0;
		for (unsigned i = 0; i < BITS_GROUP; i++)
			columns[c][i] = bits_load(at + size + i * width / 8) >> i * width % 8 &
					mask;
		size += width * (BITS_GROUP / 8);
	}
	return size;
}
