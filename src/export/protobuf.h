// protobuf: fields of Protocol Buffers messages, appended to a text
// (https://protobuf.dev/programming-guides/encoding/).
//
// A message is the bytes of its fields, one after the other, in any order. A field of a nested
// message is built in a text of its own and added with protobuf_bytes. A value of 0 is the default
// of every field and is left out, except in packed lists.
//
// Example: protobuf_u64(out, 1, 150) adds 08 96 01: field 1 of type varint, then 150.
#pragma once

#include "base/str.h"

// A number, in as few bytes as it needs or in eight; and a bool.
void protobuf_u64(struct str *out, unsigned field, uint64_t value);
void protobuf_fixed64(struct str *out, unsigned field, uint64_t value);

// A string, bytes or a nested message; an empty one is written too.
void protobuf_bytes(struct str *out, unsigned field, const void *bytes, size_t length);
void protobuf_head(struct str *out, unsigned field, uint64_t length); // without its bytes
void protobuf_text(struct str *out, unsigned field, const char *text);

// A packed list is a field of bytes that holds values without tags.
void protobuf_varint(struct str *out, uint64_t value);
