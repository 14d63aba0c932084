// columns_next: what the readers of columns have in common. For columns*.c.
//
// All of it is called for each event: so it is here, to be compiled into its callers, and what is
// rare is left to a function. A column's cursor is bad after the first entry that could not be
// read; the caller asks once, for all columns together.
#pragma once

#include "trace/columns.h"
#include "trace/word.h"
#include "wire/compiler.h"

// A number of 2 to 8 bytes, read as one word; anything else goes the careful way. At the column's
// end, or where the number is cut: 0, and the column is bad.
static inline uint64_t columns_next_long(struct bytes_cursor *in)
{
	uint64_t value;
	size_t size;

	if (unlikely(bytes_left(in) < WORD_BYTES || !word_decode(in->at, &value, &size)))
		return bytes_next(in); // what is not the shortest way is refused there
	in->at += size;
	return value;
}

// The next entry of a column; 0 where there is no such column.
static inline uint64_t columns_next_number(struct columns_decoder *decoder, enum column column)
{
	struct bytes_cursor *in = &decoder->column[column];

	if (!decoder->present[column])
		return 0;
	if (likely(in->at < in->end) && *in->at < 0x80)
		return *in->at++;
	return columns_next_long(in);
}

// The next entry of a column whose entries are one byte each. At its end: 0, and the column is bad.
static inline uint8_t columns_next_byte(struct columns_decoder *decoder, enum column column)
{
	struct bytes_cursor *in = &decoder->column[column];

	if (!decoder->present[column])
		return 0;
	if (unlikely(in->at == in->end)) {
		in->bad = true;
		return 0;
	}
	return *in->at++;
}
