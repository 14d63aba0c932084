// keep_wishes: how the trace of a recording is to be kept short (keeper_linux.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

// What the user asks for; what is 0 is not. Sizes are bytes of the file, times nanoseconds.
struct keep_wishes {
	uint64_t max_bytes;    // the trace is at most so large
	uint64_t keep_ns;      // it has at least the newest so long
	uint64_t rotate_bytes; // files of about so large, the older ones as NAME.1.tide, …
	uint64_t rotate_ns;    // or of so long
};

// Whether the trace is to be several files.
static inline bool keep_wishes_rotate(const struct keep_wishes *wishes)
{
	return wishes->rotate_bytes || wishes->rotate_ns;
}

// Whether the trace is kept short at all: then it has to be a regular file.
static inline bool keep_wishes_any(const struct keep_wishes *wishes)
{
	return wishes->max_bytes || wishes->keep_ns || keep_wishes_rotate(wishes);
}
