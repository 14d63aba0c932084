// For example, 300 is 1 0010 1100 in binary: the low seven bits, 010 1100, with the bit for "more",
// ac; then 10, 02. Two bytes, ac 02. 80 00 would be 0 in two bytes, which the decoder refuses:
// there is one way to write each number.
#include "wire/varint.h"

size_t varint_encode(uint64_t value, uint8_t *out)
{
	size_t size = 0;

	while (value >= 0x80) {
		out[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	out[size++] = (uint8_t)value;
	return size;
}

size_t varint_decode(const uint8_t *in, size_t size, uint64_t *value)
{
	uint64_t sum = 0;

	if (size > VARINT_BYTES_MAX)
		size = VARINT_BYTES_MAX;
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = in[i];

		// Nine bytes hold 63 bits; the tenth has room for one more.
		if (i == VARINT_BYTES_MAX - 1 && byte > 1)
			return 0;
		sum |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		// A last byte of 0 adds nothing: there is a shorter way to say this.
		if (byte == 0 && i > 0)
			return 0;
		*value = sum;
		return i + 1;
	}
	return 0;
}
