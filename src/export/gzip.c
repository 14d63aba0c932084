// zlib writes the header and the check sum itself: 16 is added to the window's 15 bits for that.
// What is compressed goes to the sink in pieces of 64 KiB.
#include "export/gzip.h"

#include "base/mem.h"

#include <limits.h>
#include <zlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY_LEVEL = 8, OUT_BYTES = 1 << 16 };

struct gzip {
	z_stream stream;
	struct sink *sink;
	unsigned char out[OUT_BYTES];
};

struct gzip *gzip_begin(struct sink *sink)
{
	struct gzip *gzip = mem_alloc(1, sizeof *gzip);

	gzip->sink = sink;
	// Level 1: profiles shrink by a factor of three to five at any level.
	if (deflateInit2(&gzip->stream, 1, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		mem_none(1, OUT_BYTES);
	return gzip;
}

// Hand over what is there to compress; all of it and the end, if `flush` says Z_FINISH.
static void run(struct gzip *gzip, int flush)
{
	// Again while the room for output was filled to its end: there may be more.
	do {
		gzip->stream.next_out = gzip->out;
		gzip->stream.avail_out = OUT_BYTES;
		deflate(&gzip->stream, flush);
		sink_write(gzip->sink, gzip->out, OUT_BYTES - gzip->stream.avail_out);
	} while (gzip->stream.avail_out == 0);
}

// zlib counts bytes in 32 bits, so that more goes in parts.
void gzip_write(struct gzip *gzip, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;

	while (length > 0) {
		unsigned part = length < UINT_MAX ? (unsigned)length : UINT_MAX;

		// zlib's member is not const, though it only reads.
		gzip->stream.next_in = (unsigned char *)(uintptr_t)at;
		gzip->stream.avail_in = part;
		run(gzip, Z_NO_FLUSH);
		at += part;
		length -= part;
	}
}

void gzip_end(struct gzip *gzip)
{
	gzip->stream.avail_in = 0;
	run(gzip, Z_FINISH);
	deflateEnd(&gzip->stream);
	mem_free(gzip);
}
