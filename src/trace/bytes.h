// bytes: a buffer of bytes that grows, and a cursor that reads one and is never led past its end.
//
// `struct bytes b = { 0 };` is empty; its owner calls bytes_fini. A cursor borrows. Reading past
// its end gives 0 and sets `bad`, which stays set: ask once, after reading.
//
//     struct bytes_cursor in = bytes_cursor(payload, size), part;
//     uint64_t count = bytes_next(&in);
//     part = bytes_next_part(&in);
//     ...                           read from `part` as from any cursor
//     if (in.bad || part.bad)       the bytes are damaged: none of what was read counts
//
// A part has its own `bad`, which the outer cursor does not hear of: ask both.
#pragma once

#include "base/mem.h"
#include "wire/varint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// What was added so far: `size` bytes at `data`, which is NULL before the first. Adding may move
// it.
struct bytes {
	uint8_t *data;
	size_t size;
	size_t capacity;
};

// `at` never passes `end`. Once `bad` is set, `at` may be anywhere up to there.
struct bytes_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

// Accepts { 0 }, and leaves it: the buffer may be filled again.
static inline void bytes_fini(struct bytes *bytes)
{
	mem_free(bytes->data);
	*bytes = (struct bytes){ 0 };
}

// Room for `more` bytes after the ones that are there; `size` is unchanged. Returns where they
// begin. The pointer, as `data`, is good until something is added; what is written there counts
// once the caller has raised `size`.
static inline uint8_t *bytes_reserve(struct bytes *bytes, size_t more)
{
	if (bytes->capacity - bytes->size < more)
		bytes->data = mem_grow(bytes->data, &bytes->capacity, bytes->size + more, 1);
	return bytes->data + bytes->size;
}

// Append a copy of `size` bytes; 0 of them, and then `data` may be NULL, change nothing.
static inline void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
	if (size == 0)
		return;
	memcpy(bytes_reserve(bytes, size), data, size);
	bytes->size += size;
}

// Append a number as docs/format.md, 2.1 has it: seven bits a byte, the lowest first, 1 to 10
// bytes. For example 300 is ac 02.
static inline void bytes_add_varint(struct bytes *bytes, uint64_t value)
{
	bytes->size += varint_encode(value, bytes_reserve(bytes, VARINT_BYTES_MAX));
}

// Several, one after the other. Each value becomes a uint64_t: one below 0 takes ten bytes, and
// belongs to bytes_add_signed.
#define BYTES_ADD_ALL(bytes, ...)                                 \
	bytes_add_all((bytes), (const uint64_t[]){ __VA_ARGS__ }, \
		      sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
static inline void bytes_add_all(struct bytes *bytes, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes_add_varint(bytes, values[i]);
}

// Append a number that may be below 0, in zigzag: 0, -1, 1, -2 are 0, 1, 2, 3, so that small ones
// of either sign are short.
static inline void bytes_add_signed(struct bytes *bytes, int64_t value)
{
	bytes_add_varint(bytes, varint_zigzag(value));
}

// A length and that many bytes, at most `max` of `text` (NULL: ""). A longer text is cut, not
// refused. The NUL is not written.
static inline void bytes_add_text(struct bytes *bytes, const char *text, size_t max)
{
	size_t length = text ? strnlen(text, max) : 0;

	bytes_add_varint(bytes, length);
	bytes_add(bytes, text, length);
}

// A run of equal values, which is written as the value and how many. `= { 0 }` is before the first.
// For example 7, 7, 7, 9 are 7 3 9 1: the first two when 9 is added, the others by bytes_run_end,
// which must be called once after the last value.
struct bytes_run {
	uint64_t value, count;
};

// Writes the run that is open, if one is: the value, and how many. Then `run` is as before the
// first.
static inline void bytes_run_end(struct bytes *bytes, struct bytes_run *run)
{
	if (run->count > 0)
		BYTES_ADD_ALL(bytes, run->value, run->count);
	run->count = 0;
}

static inline void bytes_run_add(struct bytes *bytes, struct bytes_run *run, uint64_t value)
{
	if (run->value != value)
		bytes_run_end(bytes, run);
	run->value = value;
	run->count++;
}

// Numbers of fixed width, for headers and footers. They are little-endian on any machine, and need
// no alignment. `out` has room for 2, 4 or 8 bytes.
static inline void bytes_put_u16(uint8_t *out, uint16_t value)
{
	for (int i = 0; i < 2; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static inline void bytes_put_u32(uint8_t *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static inline void bytes_put_u64(uint8_t *out, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

// `in` has 2, 4 or 8 bytes. Nothing is checked here: take them by bytes_next_raw where their number
// is not known.
static inline uint16_t bytes_get_u16(const uint8_t *in)
{
	return (uint16_t)(in[0] | in[1] << 8);
}

static inline uint32_t bytes_get_u32(const uint8_t *in)
{
	return (uint32_t)bytes_get_u16(in) | (uint32_t)bytes_get_u16(in + 2) << 16;
}

static inline uint64_t bytes_get_u64(const uint8_t *in)
{
	return (uint64_t)bytes_get_u32(in) | (uint64_t)bytes_get_u32(in + 4) << 32;
}

// The beginning of `size` bytes, which are borrowed as long as the cursor and what it gives are
// used.
static inline struct bytes_cursor bytes_cursor(const void *data, size_t size)
{
	return (struct bytes_cursor){ .at = data, .end = (const uint8_t *)data + size };
}

// Bytes not read yet. After something bad there are none.
static inline size_t bytes_left(const struct bytes_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

// A varint (docs/format.md, 2.1). Most are one byte, which is read without a call. One that is
// longer than ten bytes, not whole, or not written the shortest way is bad.
static inline uint64_t bytes_next(struct bytes_cursor *cursor)
{
	uint64_t value = 0;
	size_t size;

	if (cursor->at < cursor->end && *cursor->at < 0x80)
		return *cursor->at++;
	size = varint_decode(cursor->at, bytes_left(cursor), &value);
	if (size == 0) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	cursor->at += size;
	return value;
}

// Several, one after the other, each to its place. After one that is bad the others are 0.
#define BYTES_NEXT_ALL(cursor, ...)                                  \
	bytes_next_all((cursor), (uint64_t *const[]){ __VA_ARGS__ }, \
		       sizeof((uint64_t *const[]){ __VA_ARGS__ }) / sizeof(uint64_t *))
static inline void bytes_next_all(struct bytes_cursor *cursor, uint64_t *const *to, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*to[i] = bytes_next(cursor);
}

// What bytes_add_signed has written.
static inline int64_t bytes_next_signed(struct bytes_cursor *cursor)
{
	return varint_unzigzag(bytes_next(cursor));
}

// A number that must fit 32 bits; a larger one is bad.
static inline uint32_t bytes_next_u32(struct bytes_cursor *cursor)
{
	uint64_t value = bytes_next(cursor);

	if (value > UINT32_MAX) {
		cursor->bad = true;
		return 0;
	}
	return (uint32_t)value;
}

// `size` raw bytes, borrowed; NULL and bad when there are fewer.
static inline const uint8_t *bytes_next_raw(struct bytes_cursor *cursor, uint64_t size)
{
	const uint8_t *at = cursor->at;

	if (size > bytes_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at += size;
	return at;
}

// A length and that many bytes, as a cursor of their own. Where there are fewer it is an empty one,
// and the outer cursor is bad; the inner one never is from the start.
static inline struct bytes_cursor bytes_next_part(struct bytes_cursor *cursor)
{
	uint64_t size = bytes_next(cursor);
	const uint8_t *at = bytes_next_raw(cursor, size);

	return at ? bytes_cursor(at, (size_t)size) : bytes_cursor(cursor->end, 0);
}

// A text, NUL-terminated; the caller owns it (mem_free). Never NULL. A NUL inside ends it. "" where
// the text is not all there, and then the cursor is bad: no memory is taken for a length that the
// bytes only claim.
static inline char *bytes_next_text(struct bytes_cursor *cursor)
{
	struct bytes_cursor part = bytes_next_part(cursor);

	return mem_copy_bytes(part.at, strnlen((const char *)part.at, bytes_left(&part)));
}
