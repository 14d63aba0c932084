// source: what is imported, as lines or bytes, unpacked on the way.
//
// A stream that is read once, from its beginning to its end, so a pipe will do. gzip and zstd are
// recognised by their first bytes. Memory is bounded by the longest line (SOURCE_LINE_MAX).
//
// Failures are sticky: source_line and source_bytes are false at the end and at a failure; ask
// source_ok then. Input that ends early (in the middle of a compressed frame) is no failure:
// source_cut.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SOURCE_LINE_MAX = 1 << 22, SOURCE_HEAD_BYTES = 1 << 12 };

struct source;

// How far it is read.
struct source_position {
	uint64_t lines; // the number of the last line, from 1
	bool line_open; // that had no line end: it may have been cut
	uint64_t taken; // bytes, unpacked
	uint64_t read;  // bytes of the stream
};

// Borrows the stream.
struct source *source_new(FILE *file);
void source_free(struct source *source); // NULL is allowed

// The first bytes of it, unpacked, without taking them: at most SOURCE_HEAD_BYTES, fewer only where
// there are no more. A NUL follows them.
const char *source_head(struct source *source, size_t *length);

// The next line without its end (LF or CR LF), a NUL after it. Borrowed, and may be changed, until
// the next call.
bool source_line(struct source *source, char **line, size_t *length);

// The next `count` bytes, at most SOURCE_LINE_MAX. Borrowed until the next call. False: there are
// not as many.
bool source_bytes(struct source *source, size_t count, const uint8_t **bytes);

// What there is of the next bytes: how many, at most SOURCE_LINE_MAX; 0 at the end. Borrowed until
// the next call.
size_t source_some(struct source *source, const uint8_t **bytes);

const struct source_position *source_position(const struct source *source); // borrowed

// Whether it ended in the middle of a compressed frame.
bool source_cut(const struct source *source);
bool source_ok(const struct source *source, struct err *err);
