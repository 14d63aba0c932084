// payload: what is left of bytes that somebody else has written, taken number by number.
//
// The bytes are a copy, so they do not change meanwhile, but nothing in them is to be trusted. A
// number that is not all there is 0, sets `short_`, and ends the payload: so a reader takes all
// that it wants and asks once. For example of the three bytes 2a 00 01: payload_take(…, 2) is 42,
// payload_take(…, 4) is 0 and short_ is set, and every further one is 0.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// On the caller's stack; the bytes are borrowed.
struct payload {
	const uint8_t *at;
	size_t left;
	bool short_; // something was missing
};

// A number of `size` bytes, at most 8, little-endian. 0, from there on, where it is not all there.
static inline uint64_t payload_take(struct payload *payload, size_t size)
{
	uint64_t value = 0;

	if (payload->left < size) {
		payload->short_ = true;
		payload->left = 0;
		return 0;
	}
	memcpy(&value, payload->at, size);
	payload->at += size;
	payload->left -= size;
	return value;
}
