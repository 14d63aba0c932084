// native: a column is its name, its type and its values, one after the other: a text is its length
// as a number of seven bits a byte, and its bytes; all else is as it is in memory. Two rows of a
// column of numbers of 64 bits:
//
//     02 02                       columns, rows
//     04 's' 'i' 'z' 'e'  06 'U' 'I' 'n' 't' '6' '4'
//     10 00 00 00 00 00 00 00     20 00 00 00 00 00 00 00
//
// That is cut into pieces of a mebibyte, each of which is compressed by itself with a head of
// ClickHouse's own: so no more than a piece lies here that is not compressed yet.
#include "sql/native.h"

#include "base/mem.h"
#include "export/parquet_encode.h"
#include "export/protobuf.h"

#include <string.h>
#include <zstd.h>

enum { PIECE = 1 << 20, LEVEL = 1, METHOD_ZSTD = 0x90 };

void native_fini(struct native *native)
{
	ZSTD_freeCCtx(native->zstd);
	STR_FINI(&native->raw, &native->packed);
	*native = (struct native){ 0 };
}

// A checksum, which the server is asked not to look at, the method, and both sizes.
static void pack_piece(struct native *native, const char *bytes, size_t size)
{
	struct {
		uint8_t checksum[16], method, sizes[8];
	} head = { .method = METHOD_ZSTD };
	size_t room = ZSTD_compressBound(size);
	struct str *out = &native->packed;
	uint32_t both[2];
	size_t packed;

	out->text = mem_grow(out->text, &out->capacity, out->length + sizeof head + room + 1, 1);
	packed = ZSTD_compressCCtx(native->zstd, out->text + out->length + sizeof head, room, bytes,
				   size, LEVEL);
	ASSERT(!ZSTD_isError(packed));
	both[0] = (uint32_t)(packed + 9);
	both[1] = (uint32_t)size;
	memcpy(head.sizes, both, sizeof both);
	memcpy(out->text + out->length, &head, sizeof head);
	out->length += sizeof head + packed;
}

// All whole pieces; at the end also the rest.
// What is left over is moved to the front, and is less than a piece.
static void pack(struct native *native, bool end)
{
	struct str *raw = &native->raw;
	size_t at = 0;

	if (!native->zstd && !(native->zstd = ZSTD_createCCtx()))
		mem_none(1, PIECE);
	for (; raw->length - at >= PIECE; at += PIECE)
		pack_piece(native, raw->text + at, PIECE);
	if (end && raw->length > at) {
		pack_piece(native, raw->text + at, raw->length - at);
		at = raw->length;
	}
	if (at > 0) {
		memmove(raw->text, raw->text + at, raw->length - at);
		raw->length -= at;
	}
}

void native_begin(struct native *native, unsigned columns, size_t rows)
{
	ASSERT(columns > 0);
	str_clear(&native->raw);
	str_clear(&native->packed);
	protobuf_varint(&native->raw, columns);
	protobuf_varint(&native->raw, rows);
}

// Packed only when there are two pieces, as texts are short and come one by one.
void native_text(struct native *native, const char *text, size_t length)
{
	protobuf_varint(&native->raw, length);
	str_add_bytes(&native->raw, text, length);
	if (native->raw.length >= 2 * PIECE)
		pack(native, false);
}

void native_head(struct native *native, const char *name, const char *type)
{
	ASSERT(name && type);
	native_text(native, name, strlen(name));
	native_text(native, type, strlen(type));
}

void native_bytes(struct native *native, const void *bytes, size_t size)
{
	str_add_bytes(&native->raw, bytes, size);
	pack(native, false);
}

void native_numbers(struct native *native, const uint64_t *values, size_t count, unsigned width)
{
	ASSERT(width == 4 || width == 8);
	parquet_encode_plain(&native->raw, values, count, width);
	pack(native, false);
}

void native_constant(struct native *native, const char *name, uint64_t value, size_t rows)
{
	native_head(native, name, "UInt64");
	for (size_t i = 0; i < rows; i++)
		str_add_bytes(&native->raw, &value, sizeof value);
	pack(native, false);
}

void native_date(struct native *native, const char *name, unsigned day, size_t rows)
{
	uint16_t value = (uint16_t)day;

	ASSERT(day <= UINT16_MAX);
	native_head(native, name, "Date");
	for (size_t i = 0; i < rows; i++)
		str_add_bytes(&native->raw, &value, sizeof value);
	pack(native, false);
}

void native_end(struct native *native)
{
	pack(native, true);
}
