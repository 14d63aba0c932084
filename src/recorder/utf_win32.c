#include "recorder/utf_win32.h"

// The next character; `*at` moves behind it. For example, the units d83d de00 are 0x10000 + (0x3d
// << 10) + 0x200 = U+1F600. A half of a pair that is alone is U+FFFD.
static uint32_t utf_next(const uint16_t *units, size_t count, size_t *at)
{
	uint32_t c = units[(*at)++];

	if (c - 0xd800 < 0x400 && *at < count && units[*at] - 0xdc00u < 0x400)
		return 0x10000 + ((c - 0xd800) << 10) + (units[(*at)++] - 0xdc00u);
	return c - 0xd800 < 0x800 ? 0xfffd : c;
}

void utf_decode(const uint16_t *units, size_t count, char *out, size_t room)
{
	static const uint8_t first[5] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t at = 0, length = 0;

	while (at < count) {
		uint32_t c = utf_next(units, count, &at);
		uint32_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

		if (length + bytes >= room)
			break;
		// From the last byte on, six bits each; the first has what is left.
		for (uint32_t i = bytes; i-- > 1; c >>= 6)
			out[length + i] = (char)(0x80 | (c & 63));
		out[length] = (char)(first[bytes] | c);
		length += bytes;
	}
	out[length] = 0;
}
