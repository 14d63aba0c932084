// Bytes come in three steps: packed as they are read, unpacked into one buffer, and taken from
// there line by line or all at once. Which packing it is the first bytes say: 1f 8b is gzip, 28 b5
// 2f fd is zstd, all else is plain. A file may have several compressed frames one after the other,
// as `cat a.gz b.gz` makes one. One that ends inside a frame was cut: what came before is
// delivered, and source_cut says so.
#include "import/source.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { PACKED_BYTES = 1 << 16, STEP_BYTES = 1 << 18, WINDOW_BITS_ANY = 15 + 16 };

enum packing { UNKNOWN, PLAIN, GZIP, ZSTD };

// `bytes` from `at` to `end` is what was unpacked and not taken; a NUL follows it. `packed` from
// packed_at to packed_end is what was read and not unpacked.
struct source {
	FILE *file;
	enum packing packing;
	z_stream gzip;
	ZSTD_DStream *zstd;
	bool open_frame; // compressed bytes were read, and their frame has not ended
	bool ended;
	struct err err;

	unsigned char packed[PACKED_BYTES];
	size_t packed_at, packed_end;

	char *bytes; // unpacked, not taken yet: from `at` to `end`
	size_t at, end, capacity;
	struct source_position position;
};

struct source *source_new(FILE *file)
{
	struct source *source = mem_alloc(1, sizeof *source);

	source->file = file;
	return source;
}

void source_free(struct source *source)
{
	if (!source)
		return;
	if (source->packing == GZIP)
		inflateEnd(&source->gzip);
	ZSTD_freeDStream(source->zstd);
	MEM_FREE(source->bytes, source);
}

static bool fail(struct source *source, const char *why)
{
	if (source->err.kind == ERR_NONE)
		err_set(&source->err, ERR_FORMAT, "%s at byte %" PRIu64, why,
			source->position.read);
	return false;
}

// More packed bytes. False at the end. A read error is remembered and ends the input; what came
// before it is still given.
static bool fill_packed(struct source *source)
{
	if (source->packed_at < source->packed_end)
		return true;
	ASSERT(source->packed_at == source->packed_end);
	source->packed_at = 0;
	source->packed_end = fread(source->packed, 1, PACKED_BYTES, source->file);
	source->position.read += source->packed_end;
	if (ferror(source->file))
		err_errno(&source->err, errno, "cannot read it");
	return source->packed_end > 0;
}

// Once, by the first packed bytes. fread fills its buffer, so four bytes are there unless the input
// is shorter.
static void recognise(struct source *source)
{
	static const unsigned char zstd_magic[] = { 0x28, 0xb5, 0x2f, 0xfd };

	source->packing = PLAIN;
	if (source->packed_end >= 2 && source->packed[0] == 0x1f && source->packed[1] == 0x8b) {
		source->packing = GZIP;
		if (inflateInit2(&source->gzip, WINDOW_BITS_ANY) != Z_OK)
			mem_none(1, STEP_BYTES);
	} else if (source->packed_end >= sizeof zstd_magic &&
		   memcmp(source->packed, zstd_magic, sizeof zstd_magic) == 0) {
		source->packing = ZSTD;
		source->zstd = ZSTD_createDStream();
		if (!source->zstd)
			mem_none(1, STEP_BYTES);
	}
}

// Bytes after the last member that are no gzip are damage: inflate says so.
static size_t unpack_gzip(struct source *source, char *out, size_t room)
{
	z_stream *gzip = &source->gzip;
	int state;

	// Another member may follow where one has ended.
	if (!source->open_frame)
		inflateReset(gzip);
	gzip->next_in = source->packed + source->packed_at;
	gzip->avail_in = (unsigned)(source->packed_end - source->packed_at);
	gzip->next_out = (unsigned char *)out;
	gzip->avail_out = (unsigned)room;
	state = inflate(gzip, Z_NO_FLUSH);
	ASSERT(gzip->avail_in <= source->packed_end && gzip->avail_out <= room);
	source->packed_at = source->packed_end - gzip->avail_in;
	source->open_frame = state != Z_STREAM_END;
	if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
		fail(source, "damaged gzip data");
	return room - gzip->avail_out;
}

// zstd goes on with another frame by itself.
static size_t unpack_zstd(struct source *source, char *out, size_t room)
{
	ZSTD_inBuffer in = { source->packed, source->packed_end, source->packed_at };
	ZSTD_outBuffer to = { out, room, 0 };
	size_t state = ZSTD_decompressStream(source->zstd, &to, &in);

	ASSERT(in.pos <= source->packed_end && to.pos <= room);
	source->packed_at = in.pos;
	source->open_frame = state != 0;
	if (ZSTD_isError(state))
		fail(source, "damaged zstd data");
	return to.pos;
}

// Takes what there is room for from the packed bytes. Returns how many bytes it made; 0 may mean
// that it wants more.
static size_t unpack(struct source *source, char *out, size_t room)
{
	size_t count;

	switch (source->packing) {
	case GZIP:
		return unpack_gzip(source, out, room);
	case ZSTD:
		return unpack_zstd(source, out, room);
	default:
		count = source->packed_end - source->packed_at;
		if (count > room)
			count = room;
		memcpy(out, source->packed + source->packed_at, count);
		source->packed_at += count;
		return count;
	}
}

// Unpack some more after what is there. False: there is no more. What was not taken moves to the
// beginning of the buffer, so the buffer is as large as the longest line and a step of 256 KiB.
static bool fill(struct source *source)
{
	size_t room, count;

	if (source->ended || source->err.kind != ERR_NONE)
		return false;
	if (source->at > 0) {
		memmove(source->bytes, source->bytes + source->at, source->end - source->at);
		source->end -= source->at;
		source->at = 0;
	}
	// One more byte for a NUL.
	source->bytes = mem_grow(source->bytes, &source->capacity, source->end + STEP_BYTES + 1, 1);
	room = source->capacity - source->end - 1;
	ASSERT(room >= STEP_BYTES);
	do {
		// An unpacker may hold back what there was no room for.
		if (!fill_packed(source) && !(source->open_frame && source->packing != PLAIN))
			source->ended = true;
		if (source->packing == UNKNOWN)
			recognise(source);
		count = source->ended ? 0 : unpack(source, source->bytes + source->end, room);
		if (count == 0 && source->packed_at == source->packed_end && feof(source->file))
			source->ended = true;
	} while (count == 0 && !source->ended && source->err.kind == ERR_NONE);
	source->end += count;
	ASSERT(source->end < source->capacity); // there is a byte for the NUL
	source->bytes[source->end] = '\0';
	return count > 0;
}

// Formats are recognised by it, before anything is taken.
const char *source_head(struct source *source, size_t *length)
{
	while (source->end - source->at < SOURCE_HEAD_BYTES && fill(source))
		;
	*length = source->end - source->at;
	if (*length > SOURCE_HEAD_BYTES)
		*length = SOURCE_HEAD_BYTES;
	return source->bytes ? source->bytes + source->at : "";
}

static void take(struct source *source, size_t count)
{
	ASSERT(count <= source->end - source->at);
	source->at += count;
	source->position.taken += count;
}

// The search goes on where it ended, so a long line that comes in many steps is gone through once.
// A line without its end at the end of the input is given, too: source_position tells.
bool source_line(struct source *source, char **line, size_t *length)
{
	size_t searched = 0, count;
	char *end = NULL;

	do {
		count = source->end - source->at;
		if (count > searched)
			end = memchr(source->bytes + source->at + searched, '\n', count - searched);
		searched = count;
		if (!end && count > SOURCE_LINE_MAX)
			return fail(source, "a line is too long");
	} while (!end && fill(source));
	if ((!end && searched == 0) || source->err.kind != ERR_NONE)
		return false;
	ASSERT(source->at <= source->end);
	*line = source->bytes + source->at;
	*length = end ? (size_t)(end - *line) : searched;
	source->position.line_open = !end;
	take(source, *length + (end ? 1 : 0));
	source->position.lines++;
	if (*length > 0 && (*line)[*length - 1] == '\r')
		--*length;
	(*line)[*length] = '\0';
	return true;
}

// For records of fixed size. What is left of a record that was cut stays untaken.
bool source_bytes(struct source *source, size_t count, const uint8_t **bytes)
{
	if (count > SOURCE_LINE_MAX)
		return fail(source, "a record is too long");
	while (source->end - source->at < count && fill(source))
		;
	if (source->end - source->at < count)
		return false;
	*bytes = (const uint8_t *)source->bytes + source->at;
	take(source, count);
	return true;
}

// What is there already, and only if that is nothing one step more.
size_t source_some(struct source *source, const uint8_t **bytes)
{
	size_t count;

	if (source->end == source->at)
		fill(source);
	count = source->end - source->at;
	if (count > SOURCE_LINE_MAX)
		count = SOURCE_LINE_MAX;
	*bytes = (const uint8_t *)source->bytes + source->at;
	take(source, count);
	return count;
}

const struct source_position *source_position(const struct source *source)
{
	return &source->position;
}

bool source_cut(const struct source *source)
{
	return source->ended && source->open_frame;
}

bool source_ok(const struct source *source, struct err *err)
{
	if (source->err.kind != ERR_NONE)
		*err = source->err;
	return source->err.kind == ERR_NONE;
}
