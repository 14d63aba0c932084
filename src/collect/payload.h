// payload: what is left of bytes that somebody else has written, taken number by number.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
