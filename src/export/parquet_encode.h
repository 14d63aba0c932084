// parquet_encode: Parquet's encodings of columns of numbers
// (https://github.com/apache/parquet-format/blob/master/Encodings.md). All append to a text.
#pragma once

#include "base/str.h"

// PLAIN: as they are in memory here, `width` bytes of each (4 or 8).
void parquet_encode_plain(struct str *out, const uint64_t *values, size_t count, unsigned width);

// DELTA_BINARY_PACKED, of 64 bits: blocks of 128, four miniblocks each.
void parquet_encode_delta(struct str *out, const uint64_t *values, size_t count);

// RLE: runs of equal numbers, and numbers of `bits` bits each where there are none. Without a
// length in front.
void parquet_encode_hybrid(struct str *out, const uint32_t *values, size_t count, unsigned bits);

// How many bits the number has; 0 for 0.
unsigned parquet_encode_bits(uint64_t value);
