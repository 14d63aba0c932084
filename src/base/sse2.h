// sse2: sixteen bytes at a time, where the collector and the writer of traces are in a hurry.
//
// On a processor with SSE2 this is the compiler's <emmintrin.h>. On any other, or with
// SSE2_PLAIN defined, the functions that we use are here, by the same names, in plain C: what they
// do to each part of a number is what Intel's manual says. So who reads the code reads one kind of
// code, and a port needs no line of it changed; it is slower there, until the processor's own
// instructions are put below. test/meson.build runs the unit tests of all that include this once
// more with SSE2_PLAIN, so results (hashes too) are the same bit for bit.
//
// A function that is missing here: add it below, with what the manual says, before it is used.
#pragma once

#if defined(__SSE2__) && !defined(SSE2_PLAIN)

#include <emmintrin.h>

#else

#include <stdint.h>
#include <string.h>

// Sixteen bytes are one number of 128 bits to most functions; which parts it has, each says by the
// end of its name: epi8 and epi32 are signed parts of 8 and 32 bits, epu unsigned, si128 the whole.
// Names and operands are in Intel's order: the last operand of _mm_set_epi32 is the lowest part.
typedef long long __m128i __attribute__((vector_size(16), may_alias));
typedef float __m128 __attribute__((vector_size(16), may_alias));
typedef int8_t sse2_i8 __attribute__((vector_size(16)));
typedef uint8_t sse2_u8 __attribute__((vector_size(16)));
typedef int32_t sse2_i32 __attribute__((vector_size(16)));
typedef uint32_t sse2_u32 __attribute__((vector_size(16)));
typedef uint64_t sse2_u64 __attribute__((vector_size(16)));

// ---- from and to memory and numbers ----

// Sixteen bytes at any address; `from` need not be aligned.
static inline __m128i _mm_loadu_si128(const __m128i *from)
{
	__m128i value;

	memcpy(&value, from, sizeof value);
	return value;
}

// Sixteen bytes are written, at any address.
static inline void _mm_storeu_si128(__m128i *to, __m128i value)
{
	memcpy(to, &value, sizeof value);
}

// The lower half alone: eight bytes are written.
static inline void _mm_storel_epi64(__m128i *to, __m128i value)
{
	memcpy(to, &value, 8);
}

// Four numbers of 32 bits, which _mm_shuffle_ps alone asks for as such: no arithmetic is done on
// them.
static inline __m128 _mm_loadu_ps(const float *from)
{
	return (__m128)_mm_loadu_si128((const __m128i *)(const void *)from);
}

// Aligned or not is one here.
#define _mm_load_si128 _mm_loadu_si128
#define _mm_store_si128 _mm_storeu_si128

// For example _mm_set_epi32(4, 3, 2, 1) is 01000000 02000000 03000000 04000000 in memory.
static inline __m128i _mm_set_epi32(int fourth, int third, int second, int first)
{
	return (__m128i)(sse2_i32){ first, second, third, fourth };
}

// The same in all sixteen bytes.
static inline __m128i _mm_set1_epi8(char value)
{
	return (__m128i)((sse2_i8){ 0 } + value);
}

// _mm_set1_epi32 evaluates its operand four times. `cvtsi32` puts it into the lowest part, with
// zeros above; the casts change the type alone.
#define _mm_set1_epi32(value) _mm_set_epi32(value, value, value, value)
#define _mm_cvtsi32_si128(value) _mm_set_epi32(0, 0, 0, value)
#define _mm_setzero_si128() _mm_set_epi32(0, 0, 0, 0)
#define _mm_castps_si128(value) ((__m128i)(value))
#define _mm_castsi128_ps(value) ((__m128)(value))
// The lowest part as a number.
#define _mm_cvtsi128_si64(value) ((value)[0])
#define _mm_cvtsi128_si32(value) (((sse2_i32)(value))[0])

// ---- part by part ----

// A comparison gives -1, all bits set, where it holds, and 0 elsewhere, as the instructions do.
// Sums and differences are taken without a sign, so that they wrap around.
#define SSE2_BOTH(name, type, what)                             \
	static inline __m128i name(__m128i left, __m128i right) \
	{                                                       \
		return (__m128i)((type)left what(type) right);  \
	}
SSE2_BOTH(_mm_add_epi32, sse2_u32, +)
SSE2_BOTH(_mm_add_epi64, sse2_u64, +)
SSE2_BOTH(_mm_sub_epi8, sse2_u8, -)
SSE2_BOTH(_mm_sub_epi32, sse2_u32, -)
SSE2_BOTH(_mm_sub_epi64, sse2_u64, -)
SSE2_BOTH(_mm_and_si128, sse2_u64, &)
SSE2_BOTH(_mm_or_si128, sse2_u64, |)
SSE2_BOTH(_mm_xor_si128, sse2_u64, ^)
SSE2_BOTH(_mm_cmpeq_epi8, sse2_i8, ==)
SSE2_BOTH(_mm_cmpeq_epi32, sse2_i32, ==)
SSE2_BOTH(_mm_cmpgt_epi32, sse2_i32, >)
#undef SSE2_BOTH

// To the left; to the right with zeros (srl); to the right with the sign (sra).
#define _mm_slli_epi32(value, bits) ((__m128i)((sse2_u32)(value) << (bits)))
#define _mm_srli_epi64(value, bits) ((__m128i)((sse2_u64)(value) >> (bits)))
#define _mm_srai_epi32(value, bits) ((__m128i)((sse2_i32)(value) >> (bits)))

// The lower half of each of two numbers, multiplied to a whole one. Without a sign, so that none
// overflows.
static inline __m128i _mm_mul_epu32(__m128i left, __m128i right)
{
	return (__m128i)(((sse2_u64)left & UINT32_MAX) * ((sse2_u64)right & UINT32_MAX));
}

// ---- across parts ----

// All of it, so many bytes to the right, or left. `bytes` is 0 to 15, a constant. Zeros come in. To
// the right is towards the lowest byte, which is the first in memory.
static inline __m128i _mm_srli_si128(__m128i value, int bytes)
{
	__m128i moved = { 0 };

	memcpy(&moved, (const char *)&value + bytes, sizeof value - (size_t)bytes);
	return moved;
}

static inline __m128i _mm_slli_si128(__m128i value, int bytes)
{
	__m128i moved = { 0 };

	memcpy((char *)&moved + bytes, &value, sizeof value - (size_t)bytes);
	return moved;
}

// The lower halves of both, or the upper ones, side by side. `left` is the result's lower half.
static inline __m128i _mm_unpacklo_epi64(__m128i left, __m128i right)
{
	return (__m128i){ left[0], right[0] };
}

static inline __m128i _mm_unpackhi_epi64(__m128i left, __m128i right)
{
	return (__m128i){ left[1], right[1] };
}

// Two bits for each part of the result, the first lowest: which one of the operand it is.
#define _MM_SHUFFLE(fourth, third, second, first) \
	((fourth) << 6 | (third) << 4 | (second) << 2 | (first))

// For example _MM_SHUFFLE(3, 3, 1, 0) leaves the lower half as it is, and has the highest part
// twice above it.
static inline __m128i _mm_shuffle_epi32(__m128i value, int which)
{
	sse2_i32 of = (sse2_i32)value;

	return _mm_set_epi32(of[which >> 6 & 3], of[which >> 4 & 3], of[which >> 2 & 3],
			     of[which & 3]);
}

// The first two of `low`, the others of `high`.
static inline __m128 _mm_shuffle_ps(__m128 low, __m128 high, int which)
{
	return (__m128){ low[which & 3], low[which >> 2 & 3], high[which >> 4 & 3],
			 high[which >> 6 & 3] };
}

// Numbers of 32 bits as such of 16, and those as bytes: what does not fit becomes the nearest that
// does. `low` gives the first eight.
static inline __m128i _mm_packs_epi32(__m128i low, __m128i high)
{
	int16_t packed[8];
	__m128i value;

	for (int i = 0; i < 8; i++) {
		int32_t number = ((sse2_i32)(i < 4 ? low : high))[i & 3];

		packed[i] = (int16_t)(number > INT16_MAX   ? INT16_MAX
				      : number < INT16_MIN ? INT16_MIN
							   : number);
	}
	memcpy(&value, packed, sizeof value);
	return value;
}

// Signed numbers of 16 bits to bytes without a sign: -3 becomes 0, and 300 becomes 255.
static inline __m128i _mm_packus_epi16(__m128i low, __m128i high)
{
	int16_t numbers[16];
	uint8_t packed[16];
	__m128i value;

	memcpy(numbers, &low, sizeof low);
	memcpy(numbers + 8, &high, sizeof high);
	for (int i = 0; i < 16; i++)
		packed[i] = (uint8_t)(numbers[i] > UINT8_MAX ? UINT8_MAX
				      : numbers[i] < 0       ? 0
							     : numbers[i]);
	memcpy(&value, packed, sizeof value);
	return value;
}

// The differences of eight bytes each, added up.
// For example against zero: the sum of the first eight bytes, and that of the others, each below
// 2,041.
static inline __m128i _mm_sad_epu8(__m128i left, __m128i right)
{
	sse2_u8 a = (sse2_u8)left, b = (sse2_u8)right;
	__m128i sums = { 0 };

	for (int i = 0; i < 16; i++)
		sums[i / 8] += a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
	return sums;
}

// The highest bit of each part.
// For example after a comparison: bit 3 is set where byte 3 was equal.
static inline int _mm_movemask_epi8(__m128i value)
{
	int bits = 0;

	for (int i = 0; i < 16; i++)
		bits |= (((sse2_u8)value)[i] >> 7) << i;
	return bits;
}

// Of four parts of 32 bits: a number from 0 to 15.
static inline int _mm_movemask_ps(__m128 value)
{
	int bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (int)(((sse2_u32)value)[i] >> 31) << i;
	return bits;
}

#endif
