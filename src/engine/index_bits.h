// index_bits: how numbers lie in the files of a window index.
//
// Writing trusts its caller. Reading trusts nobody: every reader is told where its bytes end and
// says false, or stops, there. Little-endian, as the machines that this runs on.
#ifndef ENGINE_INDEX_BITS_H
#define ENGINE_INDEX_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A block of events: this head; for each BITS_MARK steps where their lifetimes begin (u32); the
// steps, `width` bits each, padded by 8 bytes; lifetimes as varints; jumps of the event's number.
// Offsets count from the block's first byte.
struct bits_head {
	uint32_t count, width;
	uint32_t lives_at, jumps_at;
};

enum { BITS_MARK = 1024, BITS_WIDTH_MAX = 30 };

static inline size_t bits_marks(uint32_t count)
{
	return ((size_t)count + BITS_MARK - 1) / BITS_MARK;
}

static inline size_t bits_packed_size(uint32_t count, uint32_t width)
{
	return ((size_t)count * width + 7) / 8 + 8;
}

static inline uint64_t bits_load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, 8);
	return word;
}

// `out` has bits_packed_size bytes.
static inline void bits_pack(uint8_t *out, const uint32_t *values, uint32_t count, uint32_t width)
{
	uint64_t word = 0;
	unsigned filled = 0;

	for (uint32_t i = 0; i < count; i++) {
		word |= (uint64_t)values[i] << filled;
		filled += width;
		if (filled >= 32) {
			uint32_t half = (uint32_t)word;

			memcpy(out, &half, 4);
			out += 4;
			word >>= 32;
			filled -= 32;
		}
	}
	memcpy(out, &word, 8);
}

static inline uint32_t bits_get(const uint8_t *packed, size_t index, uint32_t width)
{
	size_t bit = index * width;

	return (uint32_t)(bits_load(packed + bit / 8) >> bit % 8) & ((1u << width) - 1);
}

// A varint, as in the trace. Returns its bytes: 1 to 10.
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

// Moves *at. At the end, or behind ten bytes, it gives 0 and sets *at to `end` + 1, which is never
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

// The same where 8 bytes from `end` on may be read: without a branch for each byte.
static inline uint64_t bits_take_varint_wide(const uint8_t **at, const uint8_t *end)
{
	uint64_t word, stops;

	if (*at >= end) {
		*at = end + 1;
		return 0;
	}
	word = bits_load(*at);
	stops = ~word & UINT64_C(0x8080808080808080);
	if (!stops)
		return bits_take_varint(at, end);
	*at += ((unsigned)__builtin_ctzll(stops) + 1) / 8;
	// The bits up to its last byte's; then sevens to fourteens, to 28, to 56.
	word &= stops ^ (stops - 1);
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

// The sizes of postings, one after the other: most are among the last few that differ, the latest
// first. `= { 0 }` is the beginning.
enum { BITS_SIZES = 3, BITS_SIZES_LOG2 = 2 };
struct bits_sizes {
	uint64_t recent[BITS_SIZES];
};

// Its place among them, from 1; 0: it is another, which is to be written. It is the latest now.
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

// The size at a place, or the one that was read for 0.
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

static inline uint64_t bits_zigzag(uint64_t value)
{
	return value << 1 ^ (0 - (value >> 63));
}

static inline uint64_t bits_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static inline unsigned bits_bytes(uint64_t value)
{
	return value ? (64 - (unsigned)__builtin_clzll(value) + 7) / 8 : 0;
}

// Two counts: a byte that says how many bytes each has (0 to 4), then those.
static inline size_t bits_put_pair(uint8_t *out, uint32_t first, uint32_t second)
{
	unsigned a = bits_bytes(first), b = bits_bytes(second);

	out[0] = (uint8_t)(a | b << 4);
	memcpy(out + 1, &first, 4);
	memcpy(out + 1 + a, &second, 4);
	return 1 + a + b;
}

// What is summed up of a site.
struct bits_sums {
	uint64_t begun, alive, begun_bytes, alive_bytes;
};

// Two bytes that say how many bytes each number has (0 to 8), then those. Writes up to 7 bytes
// more than it says.
static inline size_t bits_put_sums(uint8_t *out, const struct bits_sums *sums)
{
	const uint64_t values[4] = { sums->begun, sums->alive, sums->begun_bytes,
				     sums->alive_bytes };
	size_t at = 2;
	unsigned widths = 0;

	for (unsigned i = 0; i < 4; i++) {
		unsigned bytes = bits_bytes(values[i]);

		memcpy(out + at, &values[i], 8);
		at += bytes;
		widths |= bytes << 4 * i;
	}
	out[0] = (uint8_t)widths;
	out[1] = (uint8_t)(widths >> 8);
	return at;
}

// A number of so many bytes (at most 8), of which 8 may be read.
static inline uint64_t bits_take(const uint8_t *at, unsigned bytes)
{
	return bytes ? bits_load(at) & (UINT64_MAX >> (64 - 8 * bytes)) : 0;
}

#endif
