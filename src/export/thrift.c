#include "export/thrift.h"

#include "base/mem.h"
#include "export/protobuf.h"

#include <string.h>

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static void field_of(struct thrift *thrift, unsigned field, enum thrift_type type)
{
	unsigned *last = &thrift->last[thrift->depth];
	unsigned step = field - *last;

	ASSERT(field > *last);
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
