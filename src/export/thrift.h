// thrift: Thrift's compact protocol, as far as Parquet's headers and footer need it
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md). Appends to a
// text.
//
//     thrift_begin                   a struct, also the outermost one
//       thrift_i32 …                 its fields, numbers rising
//       thrift_list                  its items follow: thrift_item_…, or thrift_begin … thrift_end
//     thrift_end
#pragma once

#include "base/str.h"

enum { THRIFT_DEPTH_MAX = 8 };

enum thrift_type {
	THRIFT_I32 = 5,
	THRIFT_I64 = 6,
	THRIFT_BINARY = 8,
	THRIFT_LIST = 9,
	THRIFT_STRUCT = 12,
};

struct thrift {
	struct str *out;                 // borrowed
	unsigned last[THRIFT_DEPTH_MAX]; // private: the last field of each open struct
	unsigned depth;                  // private
};

// Field 0: an item of a list, or the outermost struct.
void thrift_begin(struct thrift *thrift, unsigned field);
void thrift_end(struct thrift *thrift);

// A field and its value.
void thrift_i32(struct thrift *thrift, unsigned field, int32_t value);
void thrift_i64(struct thrift *thrift, unsigned field, int64_t value);
void thrift_binary(struct thrift *thrift, unsigned field, const void *bytes, size_t length);
void thrift_text(struct thrift *thrift, unsigned field, const char *text);

// A field that is a list of so many items; and an item.
void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type type, size_t count);
void thrift_item_i32(struct thrift *thrift, int32_t value);
void thrift_item_text(struct thrift *thrift, const char *text);
