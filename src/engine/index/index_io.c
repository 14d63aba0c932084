// For example index_out_put_u64(out, 3), index_out_put_varint(out, 300) and index_out_end write
//
//     03 00 00 00 00 00 00 00    ac 02    1d c1 26 0d
//
// The last four bytes are the CRC32C of the ten before them. A reader that asks for more than these
// ten gets zeros, and the file is `bad` from then on.
#include "engine/index/index_io.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "engine/index/index_bits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { INDEX_IO_MAX = 1 << 30 };

// It may be large, so it is not kept.
struct index_out {
	int directory, fd;
	char name[24], name_new[32];
	uint32_t crc;
	uint8_t buffer[1 << 16];
	size_t filled;
	bool ok;
	struct err err;
};

// An error is kept, and what comes after it is thrown away: index_out_end tells of it.
static void flush(struct index_out *out)
{
	out->crc = crc32c(out->crc, out->buffer, out->filled);
	out->ok = out->ok && file_write_all(out->fd, out->buffer, out->filled, &out->err);
	out->filled = 0;
}

const char *const index_io_names[] = {
	"head", "state", "whole", "lives", "growth", "sorted-head", NULL,
};

// There are half a dozen, and files are written rarely: they are looked through one by one.
// A name that is not among them would never be removed.
static bool is_known(const char *name)
{
	size_t i = 0;

	while (index_io_names[i] && strcmp(index_io_names[i], name) != 0)
		i++;
	return index_io_names[i] != NULL;
}

// It is written under another name, "head.new" for "head". What a build that was killed left under
// it is emptied.
struct index_out *index_out_new(int directory, const char *name)
{
	struct index_out *out = mem_alloc(1, sizeof *out);

	ASSERT(strlen(name) < sizeof out->name);
	ASSERT(is_known(name)); // else it would be left when the index is removed
	out->directory = directory;
	snprintf(out->name, sizeof out->name, "%s", name);
	snprintf(out->name_new, sizeof out->name_new, "%s.new", out->name);
	out->fd = file_open_in(directory, out->name_new,
			       FILE_WRITE | FILE_CREATE | FILE_EMPTY | FILE_AS_FOLDER);
	out->ok = out->fd >= 0 || err_errno(&out->err, errno, "cannot create %s", name);
	return out;
}

void index_out_put(struct index_out *out, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	while (size > 0) {
		size_t part = sizeof out->buffer - out->filled;

		ASSERT(part > 0 && part <= sizeof out->buffer);
		part = part < size ? part : size;
		memcpy(out->buffer + out->filled, from, part);
		out->filled += part;
		from += part;
		size -= part;
		if (out->filled == sizeof out->buffer)
			flush(out);
	}
}

void index_out_put_u64(struct index_out *out, uint64_t value)
{
	index_out_put(out, &value, sizeof value);
}

void index_out_put_varint(struct index_out *out, uint64_t value)
{
	uint8_t bytes[10];

	index_out_put(out, bytes, bits_put_varint(bytes, value));
}

void index_out_put_array(struct index_out *out, const void *items, size_t count, size_t size)
{
	index_out_put_u64(out, count);
	if (count)
		index_out_put(out, items, count * size);
}

static void drop(struct index_out *out)
{
	file_remove_in(out->directory, out->name_new);
	mem_free(out);
}

// The checksum is put like any other bytes, and a copy of it: putting it changes out->crc. A file
// is renamed only after it was closed without an error, as some file systems tell of a full disk no
// earlier.
bool index_out_end(struct index_out *out, struct err *err)
{
	uint32_t crc;
	bool ok;

	flush(out);
	crc = out->crc;
	index_out_put(out, &crc, sizeof crc);
	flush(out);
	if (out->fd >= 0 && !file_close(out->fd) && out->ok)
		out->ok = err_errno(&out->err, errno, "cannot write %s", out->name);
	if (out->ok && !file_rename_in(out->directory, out->name_new, out->name))
		out->ok = err_errno(&out->err, errno, "cannot rename %s", out->name);
	ok = out->ok;
	if (!ok)
		*err = out->err;
	if (ok)
		mem_free(out);
	else
		drop(out);
	return ok;
}

void index_out_drop(struct index_out *out)
{
	file_close(out->fd);
	drop(out);
}

// The whole file is looked at once, for its checksum. A file that was changed by intent may still
// have a right one, so what is taken from it is checked all the same.
bool index_in_open(struct index_in *in, int directory, const char *name, struct err *err)
{
	uint32_t crc = 0;
	int fd = file_open_in(directory, name, FILE_READ);
	bool ok;

	*in = (struct index_in){ .bad = true };
	if (fd < 0)
		return err_set(err, ERR_FORMAT, "the index is not finished");
	ok = file_view_fd(&in->view, fd, err);
	file_close(fd);
	if (!ok)
		return false;
	ok = in->view.size >= sizeof crc && in->view.size <= INDEX_IO_MAX;
	if (ok) {
		memcpy(&crc, in->view.bytes + in->view.size - sizeof crc, sizeof crc);
		ok = crc == crc32c(0, in->view.bytes, in->view.size - sizeof crc);
	}
	if (!ok) {
		index_in_close(in);
		return err_set(err, ERR_FORMAT, "the index is damaged");
	}
	in->bad = false;
	in->at = in->view.bytes;
	in->end = in->at + in->view.size - sizeof crc;
	return true;
}

void index_in_close(struct index_in *in)
{
	file_view_close(&in->view);
	*in = (struct index_in){ .bad = true };
}

// What is not there is zeros, and `bad` stays: so callers take many numbers and ask once, at the
// end.
void index_in_take(struct index_in *in, void *out, size_t size)
{
	ASSERT(in->at <= in->end);
	if ((size_t)(in->end - in->at) < size)
		in->bad = true;
	if (in->bad) {
		memset(out, 0, size);
		return;
	}
	memcpy(out, in->at, size);
	in->at += size;
}

uint64_t index_in_take_u64(struct index_in *in)
{
	uint64_t value;

	index_in_take(in, &value, sizeof value);
	return value;
}

// bits_take_varint says that there is none by a place after the end, from which nothing may be
// taken.
uint64_t index_in_take_varint(struct index_in *in)
{
	uint64_t value = in->bad ? 0 : bits_take_varint(&in->at, in->end);

	if (in->at > in->end) {
		in->at = in->end;
		in->bad = true;
	}
	return value;
}

bool index_in_is_flag(const bool *taken)
{
	uint8_t byte;

	memcpy(&byte, taken, sizeof byte);
	return byte <= 1;
}

// `size`: the fewest bytes that an item takes. A count of more items than the bytes left can hold
// is refused before memory is taken for them: 1,000,000 items of 8 bytes in 4 KiB are none.
size_t index_in_take_count(struct index_in *in, size_t size)
{
	uint64_t count = index_in_take_u64(in);

	if (count > (size_t)(in->end - in->at) / size)
		in->bad = true;
	return in->bad ? 0 : (size_t)count;
}

// Never NULL. There is one item more, of zeros: an array of bytes is a text.
void *index_in_take_array(struct index_in *in, size_t *count, size_t size)
{
	void *items;

	*count = index_in_take_count(in, size);
	items = mem_alloc(*count + 1, size);
	if (*count)
		index_in_take(in, items, *count * size);
	return items;
}
