// text: the few things that other programs take from libc's string.h.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Under their usual names, because the compiler may call them on its own, and doing what the C
// standard says. They are hidden, so that the program's own are not replaced. Tests link with libc.
#ifdef TEXT_OF_LIBC
#define TEXT_HIDDEN
#else
#define TEXT_HIDDEN HIDDEN
#endif
TEXT_HIDDEN void *memcpy(void *restrict to, const void *restrict from, size_t size);
TEXT_HIDDEN void *memset(void *to, int byte, size_t size);
TEXT_HIDDEN void *memmove(void *to, const void *from, size_t size);
TEXT_HIDDEN int memcmp(const void *a, const void *b, size_t size);

// The number that is at an address of any alignment, in the processor's order of bytes.
static inline uint32_t text_load32(const void *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, 4);
	return value;
}

// strlen, byte by byte: texts here are names and paths, and no library may be called. The NUL is
// not counted.
static inline size_t text_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static inline uint32_t text_hash(const char *text)
{
	uint32_t hash = 5381;

	while (*text)
		hash = hash * 33 + (uint8_t)*text++;
	return hash;
}

// Whether the two are the same text.
static inline bool text_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

// The rest of `text` after `prefix`, or NULL: it does not begin so. For example
// text_after("LD_PRELOAD=x", "LD_PRELOAD=") is "x". What is returned points into `text`.
static inline const char *text_after(const char *text, const char *prefix)
{
	while (*prefix) {
		if (*text++ != *prefix++)
			return NULL;
	}
	return text;
}

// Whether `part` is somewhere in it.
static inline bool text_has(const char *text, const char *part)
{
	for (; *text; text++)
		if (text_after(text, part))
			return true;
	return false;
}

// The path of descriptor `fd`, as "/proc/self/fd/7": `folder` with its slash, and the number. `out`
// has room for ten digits and a NUL after the folder.
HIDDEN void text_put_fd(char *out, const char *folder, uint32_t fd);
