// 32 flags, the highest first, say of each item that follows whether it is a byte as it is or a
// match: 13 bits of distance less one, and three of length less three. For example the thirteen
// bytes
//
//     ff ff ff 1f  61 62 63  17 00  0f ff 26 01
//
// The flags are 0x1fffffff: three bytes as they are, a b c, then a match. Its word is 0x0017: the
// distance is (0x17 >> 3) + 1 = 3, and the length is 7, so it goes on: half a byte, 15, then a
// byte, 255, then the word 0x0126 = 294, and that plus three is 297. So "abc" is repeated to 300
// bytes.
#include "import/xpress.h"

#include "trace/bytes.h"

enum {
	FLAGS = 32,
	LENGTH_MIN = 3,
	LENGTH_IN_WORD = 7,
	LENGTH_IN_NIBBLE = 15,
	LENGTH_IN_BYTE = 255
};

// Two long lengths share one byte, the lower half first: `nibble` is where it is while its upper
// half is not used.
struct packed {
	const uint8_t *at, *end;
	const uint8_t *nibble; // a byte of which the upper half is the next short length; or NULL
};

// A length of 10 bytes or more goes on in half a byte, a byte, two bytes and four. 0: damaged.
static size_t long_length(struct packed *packed)
{
	size_t length;

	if (packed->nibble) {
		length = *packed->nibble >> 4;
		packed->nibble = NULL;
	} else if (packed->at < packed->end) {
		packed->nibble = packed->at++;
		length = *packed->nibble & 15;
	} else {
		return 0;
	}
	if (length < LENGTH_IN_NIBBLE)
		return length + LENGTH_IN_WORD + LENGTH_MIN;
	if (packed->at == packed->end)
		return 0;
	length = *packed->at++;
	if (length < LENGTH_IN_BYTE)
		return length + LENGTH_IN_NIBBLE + LENGTH_IN_WORD + LENGTH_MIN;
	if (packed->end - packed->at < 2)
		return 0;
	length = bytes_get_u16(packed->at);
	packed->at += 2;
	if (length == 0) {
		if (packed->end - packed->at < 4)
			return 0;
		length = bytes_get_u32(packed->at);
		packed->at += 4;
	}
	return length < LENGTH_IN_NIBBLE + LENGTH_IN_WORD ? 0 : length + LENGTH_MIN;
}

// A match may overlap what it makes: then it repeats.
static void copy_match(uint8_t *to, size_t distance, size_t length)
{
	const uint8_t *from = to - distance;

	if (distance >= length) {
		memcpy(to, from, length);
		return;
	}
	for (size_t i = 0; i < length; i++)
		to[i] = from[i];
}

// Each length is held against the bytes and the room that are left, so nothing is read or written
// outside of either, whatever the input is.
bool xpress_unpack(const uint8_t *in, size_t size, uint8_t *out, size_t room)
{
	struct packed packed = { .at = in, .end = in + size };
	uint32_t flags = 0;
	unsigned flags_left = 0;
	size_t count = 0;

	while (count < room) {
		size_t word, length, distance;

		if (flags_left == 0) {
			if (packed.end - packed.at < 4)
				return false;
			flags = bytes_get_u32(packed.at);
			packed.at += 4;
			flags_left = FLAGS;
		}
		if (!(flags >> --flags_left & 1)) {
			if (packed.at == packed.end)
				return false;
			out[count++] = *packed.at++;
			continue;
		}
		if (packed.end - packed.at < 2)
			return false;
		word = bytes_get_u16(packed.at);
		packed.at += 2;
		distance = (word >> 3) + 1;
		length = word & 7;
		length = length == LENGTH_IN_WORD ? long_length(&packed) : length + LENGTH_MIN;
		if (length == 0 || length > room - count || distance > count)
			return false;
		copy_match(out + count, distance, length);
		count += length;
	}
	ASSERT(count == room && packed.at <= packed.end);
	return true;
}
