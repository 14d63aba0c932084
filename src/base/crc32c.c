// Eight bytes at a time ("slicing by 8"): tables[k][b] is what byte b, k bytes before the end of
// the eight, does to the checksum, so that eight look-ups, which do not wait for each other, are
// one step. Where the processor has an instruction for it, that is used. Of the text "123456789"
// the checksum is 0xe3069283.
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

enum { SLICES = 8 };

// 1 + x^6 + x^8 + … + x^28 + x^32, the highest power in the lowest bit and x^32 left out.
static const uint32_t polynomial = 0x82f63b78; // reflected

// tables[k][b]: what byte b does to the checksum k bytes later.
static uint32_t tables[SLICES][256];

static void fill_tables(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables[0][byte] = crc;
	}
	for (int slice = 1; slice < SLICES; slice++) {
		for (int byte = 0; byte < 256; byte++) {
			uint32_t crc = tables[slice - 1][byte];

			tables[slice][byte] = crc >> 8 ^ tables[0][crc & 0xff];
		}
	}
}

// The state is inverted at both ends, as the polynomial's users (iSCSI, ext4) have it: so zeros at
// the beginning count.
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
	static pthread_once_t filled = PTHREAD_ONCE_INIT;
	const uint8_t *at = bytes;

	pthread_once(&filled, fill_tables); // hardly any processor needs them
	crc = ~crc;
	for (; size >= SLICES; size -= SLICES, at += SLICES) {
		// The sum so far takes part in the first four of the eight bytes; the other four
		// look up alone.
		uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 |
				      (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);

		crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^
		      tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^ tables[3][at[4]] ^
		      tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
	}
	for (; size > 0; size--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xff];
	return ~crc;
}

#if defined(__x86_64__)

enum { LANE = 1024, LANES = 3 };

// lane_zeros[k][b]: what byte b of a sum, k bytes above its lowest, becomes after LANE zeros.
static uint32_t lane_zeros[4][256];

__attribute__((target("sse4.2"))) static uint64_t add_word(uint64_t sum, const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, 8);
	return _mm_crc32_u64(sum, word);
}

// Sums are linear: those of all bytes are made of those of their bits.
__attribute__((target("sse4.2"))) static void fill_zeros(void)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		uint64_t sum = UINT64_C(1) << bit;
		unsigned one = 1u << bit % 8;

		for (unsigned i = 0; i < LANE / 8; i++)
			sum = _mm_crc32_u64(sum, 0);
		for (unsigned byte = 0; byte < 256; byte++)
			lane_zeros[bit / 8][byte] ^= byte & one ? (uint32_t)sum : 0;
	}
}

static uint64_t over_lane(uint64_t sum)
{
	return lane_zeros[0][sum & 0xff] ^ lane_zeros[1][sum >> 8 & 0xff] ^
	       lane_zeros[2][sum >> 16 & 0xff] ^ lane_zeros[3][sum >> 24];
}

// The instruction takes three cycles, and one can begin in each: so three stretches are summed side
// by side. The sum of two of them is that of the first, taken over as many zeros as the second has
// bytes, and that of the second.
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const void *bytes,
								 size_t size)
{
	static pthread_once_t filled = PTHREAD_ONCE_INIT;
	const uint8_t *at = bytes;
	uint64_t sum = ~crc;

	if (size >= LANES * LANE)
		pthread_once(&filled, fill_zeros);
	for (; size >= LANES * LANE; size -= LANES * LANE, at += LANES * LANE) {
		uint64_t second = 0, third = 0;

		for (unsigned i = 0; i < LANE; i += 8) {
			sum = add_word(sum, at + i);
			second = add_word(second, at + LANE + i);
			third = add_word(third, at + 2 * LANE + i);
		}
		sum = over_lane(over_lane(sum) ^ second) ^ third;
	}
	for (; size >= 8; size -= 8, at += 8)
		sum = add_word(sum, at);
	for (; size > 0; size--)
		sum = _mm_crc32_u8((uint32_t)sum, *at++);
	return ~(uint32_t)sum;
}

// Asked at the first call: __builtin_cpu_supports has the processor asked a dozen questions in each
// program that starts, and in a virtual machine each is an exit to its host. Threads may race to
// ask: they get the same answer.
static bool has_sse42(void)
{
	static _Atomic int known; // 1: it has, -1: it has not
	unsigned a, b, c = 0, d;

	if (known == 0)
		known = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2 ? 1 : -1;
	return known > 0;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	if (has_sse42())
		return by_instruction(crc, bytes, size);
	return crc32c_portable(crc, bytes, size);
}

#else

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	return crc32c_portable(crc, bytes, size);
}

#endif
