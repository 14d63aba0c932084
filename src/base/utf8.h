// utf8: one character as bytes. é (e9) is c3 a9: the first byte says how many there are, each
// further one has six bits.
#pragma once

#include <stdint.h>

enum { UTF8_BYTES_MAX = 4 };

// Write the character `code` at `out`, which has room for UTF8_BYTES_MAX bytes; returns what is
// after it. `code` is below 0x200000; whether it is a character is the caller's to know.
static inline char *utf8_put(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
		return out;
	}
	if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*out++ = (char)(0xe0 | code >> 12);
		} else {
			*out++ = (char)(0xf0 | code >> 18);
			*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}
