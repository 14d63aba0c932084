// octave: classes of numbers, each twice as wide as the one before: 0, 1, 2, 3 to 4, 5 to 8 …
//
// For example 5, 6, 7 and 8 are of octave 4: octave_least(4) is 5, octave_most(4) 8. Any number has
// one, so a list of OCTAVES holds whatever is counted by them.
#pragma once

#include <stdint.h>

enum { OCTAVES = 66 }; // the last holds what is above 2^63

// For example 64 is of octave 7 (33 to 64), 65 to 128 of octave 8.
// 0 and 1 are each alone in theirs. It is an instruction or two, without a search.
static inline uint32_t octave_of(uint64_t number)
{
	return number <= 1 ? (uint32_t)number : 65 - (uint32_t)__builtin_clzll(number - 1);
}

// The least and the most that an octave holds.
static inline uint64_t octave_most(uint32_t octave)
{
	return octave == 0 ? 0 : octave > 64 ? UINT64_MAX : UINT64_C(1) << (octave - 1);
}

static inline uint64_t octave_least(uint32_t octave)
{
	return octave <= 1 ? octave : octave_most(octave - 1) + 1;
}
