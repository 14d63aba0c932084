// gzip has a header that says on which system it was made; "not known" is written, so that the same
// trace gives the same file everywhere. Base64 makes three bytes four letters: 4d 61 6e is TWFu.
#include "view/packed.h"

#include "base/mem.h"

#include <zlib.h>

enum { WINDOW_BITS_GZIP = 15 + 16, LEVEL = 7, MEMORY_LEVEL = 9, PART_BYTES = 1 << 30 };

// In parts of at most 1 GiB, as zlib counts in 32 bits. With the last part the compressor is asked
// to finish; its status is Z_OK then for as long as the rest does not fit into `part`. It is never
// asked to go on with no bytes left, which it would call an error.
static bool compress_into(struct str *out, const void *bytes, size_t size, struct err *err)
{
	gz_header head = { .os = 255 }; // "not known"
	z_stream stream = { 0 };
	unsigned char part[16384];
	const unsigned char *at = bytes;
	int status = Z_OK;

	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(err, ERR_IO, "cannot compress the data");
	deflateSetHeader(&stream, &head);
	while (status == Z_OK) {
		if (stream.avail_in == 0 && size > 0) {
			stream.avail_in = (uInt)(size < PART_BYTES ? size : PART_BYTES);
			stream.next_in = (unsigned char *)(uintptr_t)at;
			at += stream.avail_in;
			size -= stream.avail_in;
		}
		stream.next_out = part;
		stream.avail_out = sizeof part;
		status = deflate(&stream, size == 0 ? Z_FINISH : Z_NO_FLUSH);
		ASSERT(stream.avail_out <= sizeof part);
		str_add_bytes(out, part, sizeof part - stream.avail_out);
	}
	deflateEnd(&stream);
	return status == Z_STREAM_END || err_set(err, ERR_IO, "cannot compress the data");
}

// What is missing of the last three bytes is zero, and a letter that no bit of theirs is in is
// '=': "M" is TQ==, "Ma" is TWE=.
static void add_base64(struct str *out, const unsigned char *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	_Static_assert(sizeof digits == 64 + 1, "a digit for six bits");

	ASSERT(bytes || size == 0);
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? bytes[i + 1] << 8 : 0) |
				 (left > 2 ? bytes[i + 2] : 0);
		const char four[] = {
			digits[three >> 18],
			digits[three >> 12 & 63],
			left > 1 ? digits[three >> 6 & 63] : '=',
			left > 2 ? digits[three & 63] : '=',
		};

		str_add_bytes(out, four, sizeof four);
	}
}

bool packed_add(struct str *out, const void *bytes, size_t size, struct err *err)
{
	struct str compressed = { 0 };
	bool good = compress_into(&compressed, bytes, size, err);

	ASSERT(bytes || size == 0);
	if (good)
		add_base64(out, (const unsigned char *)str_get(&compressed), compressed.length);
	str_fini(&compressed);
	return good;
}
