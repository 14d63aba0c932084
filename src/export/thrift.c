// A field's head is a byte: how far its number is from that of the field before, and its type. For
// example field 3 of 32 bits, after field 1, with the value -2: 25 (two on, type 5) and 03 (-2 with
// its sign in the lowest bit). A list's head has its length in the place of the number.
#include "export/thrift.h"

#include "base/mem.h"
#include "export/protobuf.h"

#include <string.h>

// 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4: what is near 0 is short, whatever its sign.
static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static void field_of(struct thrift *thrift, unsigned field, enum thrift_type type)
{
	unsigned *last = &thrift->last[thrift->depth];
	unsigned step = field - *last;

	ASSERT(field > *last);
	// A number that does not fit follows the type by itself.
	if (step <= 15) {
		str_add_char(thrift->out, (char)(step << 4 | type));
	} else {
		str_add_char(thrift->out, (char)type);
		protobuf_varint(thrift->out, zigzag(field));
	}
	*last = field;
}

void thrift_begin(struct thrift *thrift, unsigned field)
{
	if (field)
		field_of(thrift, field, THRIFT_STRUCT);
	ASSERT(thrift->depth + 1 < THRIFT_DEPTH_MAX);
	thrift->last[++thrift->depth] = 0;
}

void thrift_end(struct thrift *thrift)
{
	ASSERT(thrift->depth > 0);
	// Type 0 ends a struct.
	str_add_char(thrift->out, 0);
	thrift->depth--;
}

void thrift_i32(struct thrift *thrift, unsigned field, int32_t value)
{
	field_of(thrift, field, THRIFT_I32);
	thrift_item_i32(thrift, value);
}

void thrift_i64(struct thrift *thrift, unsigned field, int64_t value)
{
	field_of(thrift, field, THRIFT_I64);
	protobuf_varint(thrift->out, zigzag(value));
}

void thrift_binary(struct thrift *thrift, unsigned field, const void *bytes, size_t length)
{
	ASSERT(bytes || length == 0);
	field_of(thrift, field, THRIFT_BINARY);
	protobuf_varint(thrift->out, length);
	str_add_bytes(thrift->out, bytes, length);
}

void thrift_text(struct thrift *thrift, unsigned field, const char *text)
{
	thrift_binary(thrift, field, text, strlen(text));
}

void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type type, size_t count)
{
	field_of(thrift, field, THRIFT_LIST);
	// 15 says that the length follows.
	if (count < 15) {
		str_add_char(thrift->out, (char)(count << 4 | type));
	} else {
		str_add_char(thrift->out, (char)(0xf0 | type));
		protobuf_varint(thrift->out, count);
	}
}

void thrift_item_i32(struct thrift *thrift, int32_t value)
{
	protobuf_varint(thrift->out, zigzag(value));
}

void thrift_item_text(struct thrift *thrift, const char *text)
{
	protobuf_varint(thrift->out, strlen(text));
	str_add_bytes(thrift->out, text, strlen(text));
}
