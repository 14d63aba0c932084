// One buffer serves both ways: filled and written until spill_turn, then loaded and taken from.
// For example, with a buffer of 64 bytes, putting 60 and then 40 writes the 60 to the file and
// leaves 40 in the buffer; spill_turn writes these; the first spill_get loads 64 bytes, and what
// it does not take is moved to the front when more is loaded.
#include "engine/index/spill.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "os/file.h"
#include "os/tool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

// The name is of this process and this call, whichever thread makes it, and goes at once
// (FILE_VANISHES): the file is gone with its descriptor.
bool spill_open(struct spill *spill, int directory, size_t buffer_bytes, struct err *err)
{
	static atomic_uint serial;
	char name[48];

	*spill = (struct spill){ .capacity = buffer_bytes };
	snprintf(name, sizeof name, "temporary-%d-%u", (int)tool_own_pid(),
		 atomic_fetch_add(&serial, 1));
	spill->fd =
		file_open_in(directory, name, FILE_WRITE | FILE_NEW | FILE_PRIVATE | FILE_VANISHES);
	if (spill->fd < 0) {
		spill->fd = 0;
		return err_errno(err, errno, "cannot create a temporary file");
	}
	spill->buffer = mem_resize(NULL, buffer_bytes, 1);
	return true;
}

bool spill_open_anywhere(struct spill *spill, size_t buffer_bytes, struct err *err)
{
	*spill = (struct spill){ .capacity = buffer_bytes, .fd = file_temp(err) };
	if (spill->fd < 0) {
		spill->fd = 0;
		return false;
	}
	spill->buffer = mem_resize(NULL, buffer_bytes, 1);
	return true;
}

void spill_close(struct spill *spill)
{
	if (spill->fd > 0)
		file_close(spill->fd);
	mem_free(spill->buffer);
	*spill = (struct spill){ 0 };
}

// A short write is gone on with; one of nothing is a full disk.
void spill_flush(struct spill *spill)
{
	size_t at = 0;

	while (at < spill->filled && !spill->error) {
		ptrdiff_t wrote =
			file_write_some(spill->fd, spill->buffer + at, spill->filled - at);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			spill->error = wrote < 0 ? errno : ENOSPC;
		else
			at += (size_t)wrote;
	}
	spill->filled = 0;
}

void spill_put_varint(struct spill *spill, uint64_t value)
{
	uint8_t bytes[10];

	spill_put(spill, bytes, bits_put_varint(bytes, value));
}

// What is asked for may be in the file, in the buffer, or partly in both: first the part up to
// `written`, then the rest.
bool spill_copy(const struct spill *spill, uint64_t at, void *out, size_t size)
{
	uint64_t written = spill->size - spill->filled;
	uint8_t *to = out;

	while (size > 0 && at < written) {
		size_t part = size < written - at ? size : (size_t)(written - at);
		ptrdiff_t got = file_read_at(spill->fd, to, part, at);

		if (got <= 0)
			return false;
		to += got;
		at += (uint64_t)got;
		size -= (size_t)got;
	}
	if (size > 0)
		memcpy(to, spill->buffer + (at - written), size);
	return true;
}

// What the buffer has goes to the file even if nothing else is in it: reading has one way. From
// here on `filled` is how much was loaded into the buffer, `at` how much of that was taken.
void spill_turn(struct spill *spill)
{
	spill_flush(spill);
	spill->filled = spill->at = 0;
	spill->loaded = 0;
}

// Have at least `size` bytes in the buffer, if there are so many.
static bool load(struct spill *spill, size_t size)
{
	size_t left = spill->filled - spill->at;

	if (left >= size)
		return true;
	memmove(spill->buffer, spill->buffer + spill->at, left);
	spill->at = 0;
	spill->filled = left;
	while (spill->filled < spill->capacity && spill->loaded < spill->size && !spill->error) {
		ptrdiff_t got = file_read_at(spill->fd, spill->buffer + spill->filled,
					     spill->capacity - spill->filled, spill->loaded);

		if (got <= 0) {
			spill->error = got < 0 ? errno : EIO;
			break;
		}
		spill->filled += (size_t)got;
		spill->loaded += (uint64_t)got;
	}
	return spill->filled >= size;
}

// The end and an error look alike here; spill_ok tells them apart.
bool spill_get(struct spill *spill, void *bytes, size_t size)
{
	if (!load(spill, size)) {
		memset(bytes, 0, size);
		return false;
	}
	memcpy(bytes, spill->buffer + spill->at, size);
	spill->at += size;
	return true;
}

// Ten bytes are the longest; at the end there may be fewer, and one that goes on behind them is
// none.
bool spill_get_varint(struct spill *spill, uint64_t *value)
{
	const uint8_t *at, *end;

	load(spill, 10);
	at = spill->buffer + spill->at;
	end = spill->buffer + spill->filled;
	*value = bits_take_varint(&at, end);
	if (at > end)
		return false;
	spill->at = (size_t)(at - spill->buffer);
	return true;
}

bool spill_ok(const struct spill *spill, struct err *err)
{
	return !spill->error || err_errno(err, spill->error, "cannot keep a temporary file");
}
