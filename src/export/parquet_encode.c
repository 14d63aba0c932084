// For example, the values 100, 101, 103 and 106 as differences: the first one, 100; then of the
// block 1, 2, 3 the least, 1, and what each is more than that, 0, 1, 2, in 2 bits each. Twenty
// times 5 and then 1, 2, 3, as numbers of 3 bits: a run is its length times two (40) and the value
// in a byte; what is no run is in groups of eight, so that the three are filled up with zeroes,
// which the reader, who knows how many there are, leaves out.
#include "export/parquet_encode.h"

#include "base/mem.h"
#include "export/protobuf.h"

#include <string.h>

enum {
	DELTA_BLOCK = 128,
	DELTA_PARTS = 4,
	DELTA_PART = DELTA_BLOCK / DELTA_PARTS,
	HYBRID_GROUP = 8,
	HYBRID_RUN_MIN = 16,
	CHUNK = 1024, // values that are packed at once
};
_Static_assert(HYBRID_RUN_MIN > HYBRID_GROUP, "a run may give some of its values away");

unsigned parquet_encode_bits(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

// Values have 64 bits here whatever their column; those of 32 are narrowed 1,024 at a time.
void parquet_encode_plain(struct str *out, const uint64_t *values, size_t count, unsigned width)
{
	uint32_t narrow[CHUNK];

	ASSERT(width == 4 || width == 8);
	if (width == 8) {
		str_add_bytes(out, values, count * 8);
		return;
	}
	while (count > 0) {
		size_t now = count < CHUNK ? count : CHUNK;

		for (size_t i = 0; i < now; i++)
			narrow[i] = (uint32_t)values[i];
		str_add_bytes(out, narrow, now * 4);
		values += now;
		count -= now;
	}
}

// Put `count` numbers of so many bits one after the other, the lowest bit first. Returns the
// bytes; `out` has room for eight more.
static size_t pack(uint8_t *out, const uint64_t *values, size_t count, unsigned bits)
{
	uint64_t word = 0;
	unsigned used = 0;
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		// What does not fit into the word is lost by the shift, and is the beginning of the
		// next word. With 3 bits: the 22nd value is at bit 63, so one bit of it is in the
		// first word and two are in the second.
		word |= values[i] << used;
		used += bits;
		if (used < 64)
			continue;
		memcpy(out + at, &word, 8);
		at += 8;
		used -= 64;
		word = used ? values[i] >> (bits - used) : 0;
	}
	ASSERT(used < 64 && 8 * at + used == count * bits);
	memcpy(out + at, &word, 8);
	return at + (used + 7) / 8;
}

// ---- differences ----

// Small negative numbers become small ones: 0, -1, 1, -2 are 0, 1, 2, 3.
static void add_zigzag(struct str *out, int64_t value)
{
	protobuf_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

// So many differences, at most a block of them, of which the rest is 0.
// A block has the least difference, the widths of its four parts and then their numbers; parts that
// have none are left out, but for their width of 0.
static void add_block(struct str *out, int64_t deltas[DELTA_BLOCK], size_t count)
{
	uint8_t packed[DELTA_PART * 8 + 8];
	uint64_t part[DELTA_PARTS][DELTA_PART] = { { 0 } };
	uint8_t bits[DELTA_PARTS] = { 0 };
	int64_t least = deltas[0];

	ASSERT(count > 0 && count <= DELTA_BLOCK);
	for (size_t i = 1; i < count; i++)
		least = deltas[i] < least ? deltas[i] : least;
	for (size_t p = 0; p * DELTA_PART < count; p++) {
		uint64_t all = 0;

		// As unsigned numbers, so that the difference of any two is right.
		for (size_t i = 0; i < DELTA_PART && p * DELTA_PART + i < count; i++) {
			part[p][i] = (uint64_t)deltas[p * DELTA_PART + i] - (uint64_t)least;
			all |= part[p][i];
		}
		bits[p] = (uint8_t)parquet_encode_bits(all);
	}
	add_zigzag(out, least);
	str_add_bytes(out, bits, sizeof bits);
	for (size_t p = 0; p * DELTA_PART < count; p++)
		str_add_bytes(out, packed, pack(packed, part[p], DELTA_PART, bits[p]));
}

// Differences are of 64 bits and wrap around, so that any two numbers have one.
void parquet_encode_delta(struct str *out, const uint64_t *values, size_t count)
{
	int64_t deltas[DELTA_BLOCK];

	protobuf_varint(out, DELTA_BLOCK);
	protobuf_varint(out, DELTA_PARTS);
	protobuf_varint(out, count);
	add_zigzag(out, count ? (int64_t)values[0] : 0);
	for (size_t at = 1; at < count; at += DELTA_BLOCK) {
		size_t now = count - at < DELTA_BLOCK ? count - at : DELTA_BLOCK;

		for (size_t i = 0; i < now; i++)
			deltas[i] = (int64_t)(values[at + i] - values[at + i - 1]);
		add_block(out, deltas, now);
	}
}

// ---- runs, and numbers of few bits ----

_Static_assert(CHUNK % HYBRID_GROUP == 0, "only the last group of all is filled up");

// The last group is filled up with zeroes.
static void add_packed(struct str *out, const uint32_t *values, size_t count, unsigned bits)
{
	uint8_t packed[CHUNK * 4 + 8];
	uint64_t wide[CHUNK];

	ASSERT(bits <= 32);
	if (count == 0)
		return;
	protobuf_varint(out, (count + HYBRID_GROUP - 1) / HYBRID_GROUP << 1 | 1);
	while (count > 0) {
		size_t now = count < CHUNK ? count : CHUNK;
		// Only the last chunk may have a group that is not whole, for CHUNK is a multiple
		// of eight.
		size_t whole = (now + HYBRID_GROUP - 1) / HYBRID_GROUP * HYBRID_GROUP;

		for (size_t i = 0; i < whole; i++)
			wide[i] = i < now ? values[i] : 0;
		str_add_bytes(out, packed, pack(packed, wide, whole, bits));
		values += now;
		count -= now;
	}
}

static void add_run(struct str *out, uint32_t value, size_t count, unsigned bits)
{
	protobuf_varint(out, (uint64_t)count << 1);
	str_add_bytes(out, &value, (bits + 7) / 8);
}

// Sixteen equal ones and more are a run. What is before a run is filled up to groups of eight from
// the run's own values, since only the last group of all may be filled up with others.
void parquet_encode_hybrid(struct str *out, const uint32_t *values, size_t count, unsigned bits)
{
	size_t from = 0; // from here to `at` there are no runs
	size_t at = 0;

	ASSERT(bits <= 32);
	while (at < count) {
		size_t end = at + 1;

		while (end < count && values[end] == values[at])
			end++;
		// For example 3 other values and then 20 equal ones: five of the run fill up the
		// first group, and the run has 15 left.
		if (end - at >= HYBRID_RUN_MIN) {
			size_t whole = (at - from + HYBRID_GROUP - 1) / HYBRID_GROUP * HYBRID_GROUP;

			add_packed(out, values + from, whole, bits);
			from += whole;
			ASSERT(from < end); // a run is longer than what fills up a group
			add_run(out, values[from], end - from, bits);
			from = end;
		}
		at = end;
	}
	add_packed(out, values + from, count - from, bits);
}
