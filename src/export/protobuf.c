// A number goes out seven bits at a time, the lowest first; the high bit of a byte says that more
// follow: 150 is 1001 0110, so 96 01. A tag is the field's number and, in its low three bits, what
// follows.
#include "export/protobuf.h"

#include "base/mem.h"

#include <string.h>

// The low three bits of a tag: how long the value is.
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void protobuf_varint(struct str *out, uint64_t value)
{
	while (value >= 0x80) {
		str_add_char(out, (char)(0x80 | (value & 0x7f)));
		value >>= 7;
	}
	str_add_char(out, (char)value);
}

static void add_tag(struct str *out, unsigned field, enum wire_type type)
{
	protobuf_varint(out, (uint64_t)field << 3 | type);
}

// Zero is what a reader takes for a field that is not there: it is left out.
void protobuf_u64(struct str *out, unsigned field, uint64_t value)
{
	ASSERT(field > 0);
	if (value == 0)
		return;
	add_tag(out, field, WIRE_VARINT);
	protobuf_varint(out, value);
}

void protobuf_fixed64(struct str *out, unsigned field, uint64_t value)
{
	ASSERT(field > 0);
	if (value == 0)
		return;
	add_tag(out, field, WIRE_FIXED64);
	for (int i = 0; i < 8; i++)
		str_add_char(out, (char)(value >> 8 * i & 0xff));
}

void protobuf_bytes(struct str *out, unsigned field, const void *bytes, size_t length)
{
	ASSERT(bytes || length == 0);
	protobuf_head(out, field, length);
	str_add_bytes(out, bytes, length);
}

void protobuf_head(struct str *out, unsigned field, uint64_t length)
{
	ASSERT(field > 0);
	add_tag(out, field, WIRE_BYTES);
	protobuf_varint(out, length);
}

void protobuf_text(struct str *out, unsigned field, const char *text)
{
	protobuf_bytes(out, field, text, strlen(text));
}
