// native: rows in ClickHouse's format Native, as the compressed blocks that a server takes.
//
//     native_begin          how many columns and rows there are
//       native_head         of each column, and then all its values:
//       native_numbers, native_text, native_constant, native_date, native_bytes
//     native_end            `packed` is whole
//
// Not all columns need to be put by the same one: what is packed of several, one after the other,
// is one text.
#pragma once

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

struct native {
	struct str packed; // of the caller as soon as he takes it
	struct str raw;    // private, as is
	void *zstd;
};

void native_fini(struct native *native); // accepts { 0 }

// The first block of columns, after which more may come.
void native_begin(struct native *native, unsigned columns, size_t rows);
// What a column is called, and its type there; all its values follow.
void native_head(struct native *native, const char *name, const char *type);

void native_numbers(struct native *native, const uint64_t *values, size_t count, unsigned width);
void native_text(struct native *native, const char *text, size_t length);
void native_bytes(struct native *native, const void *bytes, size_t size); // as they are
void native_constant(struct native *native, const char *name, uint64_t value, size_t rows);
void native_date(struct native *native, const char *name, unsigned day, size_t rows);

// The rest of what is not packed yet.
void native_end(struct native *native);
