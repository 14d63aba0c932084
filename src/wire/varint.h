// varint: unsigned integers in 1 to 10 bytes, seven bits per byte, low bits first.
//
// Every number has exactly one encoding; the decoder refuses any other. Traces of the same events
// are therefore equal byte for byte (docs/format.md, section 2.1).
//
// Freestanding: no allocation, no libc call.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { VARINT_BYTES_MAX = 10 };

// Write `value` at `out`, which must have room for VARINT_BYTES_MAX bytes.
// Return the number of bytes written, 1 to VARINT_BYTES_MAX.
size_t varint_encode(uint64_t value, uint8_t *out);

// Read one number from `in[0..size)` into `*value`.
// Return the number of bytes read, or 0 if the input ends too early, does not fit in 64 bits, or
// is not the shortest encoding. `*value` is then unchanged.
size_t varint_decode(const uint8_t *in, size_t size, uint64_t *value);

// Signed numbers with small magnitude as small unsigned ones: 0, -1, 1, -2 … -> 0, 1, 2, 3 …
static inline uint64_t varint_zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t varint_unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
