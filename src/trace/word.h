// word: a number of up to eight bytes (wire/varint.h), read at once and without a branch.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORD_BYTES = 8 };

// The number that begins at `at`, where WORD_BYTES can be read; it has `*size` bytes. False: it is
// longer, or not said the shortest way; then neither value nor size is to be believed.
// For example ac 02 ff …: ends has the top bit of the second byte and of none below, so bits is 16.
// The word is cut to 0x02ac, good is true as the last byte is not 0. The groups 0x2c and 0x02 move
// together: 0x2c | 0x02 << 7 = 300, of 2 bytes.
static inline __attribute__((always_inline)) bool word_decode(const uint8_t *at, uint64_t *value,
							      size_t *size)
{
	uint64_t word, ends;
	unsigned bits;
	bool good;

	memcpy(&word, at, sizeof word);
	// The number's bytes end at the lowest byte whose top bit is clear.
	ends = ~word & UINT64_C(0x8080808080808080);
	bits = (unsigned)__builtin_ctzll(ends | UINT64_C(1) << 63) + 1;
	word &= UINT64_MAX >> (64 - bits);
	good = ends != 0 && (bits == 8 || word >> (bits - 8) != 0);
	// Move the groups of seven bits together: pairs, then fours, then eights.
	word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	*value = (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
	*size = bits / 8;
	return good;
}
