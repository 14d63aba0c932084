// pack: columns of numbers in as few bits as they need, for the files of a window index.
//
// A column is groups of PACK_GROUP numbers. A group has one width for all; the few that need more
// are patched: what they have above the width follows, with the places where it belongs. For
// example 128 numbers, 126 of which are below 16 and two about a million: 4 bits each (64 bytes),
// two places (2 bytes) and twice 16 bits, in place of 20 bits each (320 bytes).
//
//     byte     the width of a number, 0 to 56 or 64; and PACK_PATCHED
//     bytes    if patched: how many are, the width of what they have above, the place of each
//     bits     the numbers; then, from a whole byte on, what the patched ones have above
//
// Writing trusts its caller. Reading trusts nobody: it is given where its bytes end, of which the 8
// after may be read too, and says false where they cannot be a column.
//
//     uint8_t *out = mem_resize(NULL, pack_bytes_max(count), 1);
//     size_t size = (size_t)(pack_put(out, values, count) - out);
//     ...
//     if (!pack_take(&at, end, values, count))     it is damaged; 8 bytes follow `end`
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PACK_GROUP = 128, PACK_PATCHED = 0x80, PACK_SLACK = 8 };

// A group takes so many bytes at most, and PACK_SLACK more are written to: three of the head, a
// place for each number, and eight bytes for each number and for what it has above.
enum { PACK_GROUP_MAX = 3 + PACK_GROUP + 2 * PACK_GROUP * 8 };

// How many bits a number has. 0 has none.
static inline unsigned pack_width(uint64_t value)
{
	return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

// One group of at most PACK_GROUP numbers. Returns the end of what it writes. `out` has room for
// PACK_GROUP_MAX + PACK_SLACK bytes.
uint8_t *pack_put_group(uint8_t *out, const uint64_t *values, uint32_t count);

// *at is moved on. False: the bytes before `end` are no such group. `count` is that with which it
// was written, which the bytes do not say.
bool pack_take_group(const uint8_t **at, const uint8_t *end, uint64_t *values, uint32_t count);

// Move on past one, of which the numbers are not wanted.
bool pack_skip_group(const uint8_t **at, const uint8_t *end, uint32_t count);

// All groups of a column. A column of `count` takes pack_bytes_max(count). The slack is in it.
size_t pack_bytes_max(size_t count);
uint8_t *pack_put(uint8_t *out, const uint64_t *values, size_t count);
bool pack_take(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t count);

// A column one number at a time, without room for all. pack_cursor_open begins before the first.
struct pack_cursor {
	const uint8_t *at, *end;                // of the groups to come
	const uint8_t *numbers, *places, *high; // of this one: bits, and where patches are
	uint64_t mask, high_mask;
	uint32_t left; // numbers of the column that are not in this group, or before it
	uint32_t next, count;
	uint32_t patch, patched;
	unsigned width, above;
	bool bad;
};

static inline struct pack_cursor pack_cursor_open(const uint8_t *at, const uint8_t *end,
						  uint32_t count)
{
	return (struct pack_cursor){ .at = at, .end = end, .left = count };
}

// To the next group. Sets `bad`: there is none; it seems to be of zeros then.
void pack_cursor_group(struct pack_cursor *cursor);

// The next number; 0 where the column is damaged, or at its end.
static inline uint64_t pack_cursor_next(struct pack_cursor *cursor)
{
	uint64_t value, bit;

	if (cursor->next == cursor->count)
		pack_cursor_group(cursor);
	bit = (uint64_t)cursor->next * cursor->width;
	memcpy(&value, cursor->numbers + bit / 8, 8);
	value = value >> bit % 8 & cursor->mask;
	if (cursor->patch < cursor->patched && cursor->places[cursor->patch] == cursor->next) {
		uint64_t high;

		bit = (uint64_t)cursor->patch++ * cursor->above;
		memcpy(&high, cursor->high + bit / 8, 8);
		high = high >> bit % 8 & cursor->high_mask;
		value |= high << cursor->width;
	}
	cursor->next++;
	return value;
}

// Bits of any width, one number after the other, from the lowest on. `= { .at = out }` is a
// beginning; pack_bits_end says where the next byte is. Up to 8 bytes after it are written to.
struct pack_bits {
	uint8_t *at;     // where the next eight bytes go
	uint64_t word;   // bits that are not written yet, from the lowest on
	unsigned filled; // how many they are, below 64
};

// `value` is below 2^width, and `width` at most 64.
static inline void pack_bits(struct pack_bits *bits, uint64_t value, unsigned width)
{
	bits->word |= value << bits->filled;
	bits->filled += width;
	if (bits->filled < 64)
		return;
	memcpy(bits->at, &bits->word, 8);
	bits->at += 8;
	bits->filled -= 64;
	bits->word = bits->filled ? value >> (width - bits->filled) : 0;
}

// The end of what was put, rounded up to a byte. Eight bytes from bits->at on are written to.
static inline uint8_t *pack_bits_end(struct pack_bits *bits)
{
	memcpy(bits->at, &bits->word, 8);
	return bits->at + (bits->filled + 7) / 8;
}

// Numbers in place of words of which there are few, in order of their first appearance.
// pack_words_clear comes before the first: as { 0 } all slots count as filled. 160 KB.
enum { PACK_WORDS_MAX = 1 << 12, PACK_WORDS_SLOTS = 4 * PACK_WORDS_MAX };

struct pack_words {
	uint64_t words[PACK_WORDS_MAX];
	uint32_t count;
	uint32_t turn; // of slots that are filled; never 0 once it was cleared
	struct pack_words_slot {
		uint32_t turn;
		uint32_t number;
	} slots[PACK_WORDS_SLOTS];
};

// Forget all of them. Constant time, but for once in 2^32.
void pack_words_clear(struct pack_words *words);

// The number of a word, which may be new; PACK_WORDS_MAX: there are too many.
static inline uint32_t pack_words_number(struct pack_words *words, uint64_t word)
{
	size_t slot = (size_t)(word * UINT64_C(0x9e3779b97f4a7c15) >> 40) % PACK_WORDS_SLOTS;

	for (; words->slots[slot].turn == words->turn; slot = (slot + 1) % PACK_WORDS_SLOTS)
		if (words->words[words->slots[slot].number] == word)
			return words->slots[slot].number;
	if (words->count == PACK_WORDS_MAX)
		return PACK_WORDS_MAX;
	words->slots[slot] = (struct pack_words_slot){ words->turn, words->count };
	words->words[words->count] = word;
	return words->count++;
}
