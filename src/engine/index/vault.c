// Bytes are gathered in a buffer of four pages and written when it is full, each page with its
// checksum. For example 100,000 bytes, appended in whatever parts:
//
//     65,536    are in the file, in 4 pages of 16 KiB, with 4 sums
//     34,464    wait in the buffer; vault_finish writes them as 2 pages and one of 1,696 bytes
//
// If the process ends before that, its successor is given the size, the sums and these 34,464
// bytes, cuts the file to 65,536, and goes on as if nothing had been. A last page that is not full
// is summed as far as it goes.
#include "engine/index/vault.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	BUFFER = VAULT_PAGE * 4, // written at once
	STRIDE = 1 << 20,        // read at once while checking
};

bool vault_create(struct vault *vault, int directory, const char *name, struct err *err)
{
	*vault = (struct vault){ .fd = -1 };
	snprintf(vault->name, sizeof vault->name, "%s", name);
	// A reader of the old one may go on with it.
	file_remove_in(directory, name);
	vault->fd = file_open_in(directory, name,
				 FILE_WRITE | FILE_CREATE | FILE_EMPTY | FILE_AS_FOLDER);
	if (vault->fd < 0)
		return err_errno(err, errno, "cannot create %s", name);
	vault->buffer_size = BUFFER;
	vault->buffer = mem_alloc(1, BUFFER);
	return true;
}

bool vault_open(struct vault *vault, int directory, const char *name, uint64_t size, uint32_t *sums,
		struct err *err)
{
	uint64_t there;

	*vault = (struct vault){ .fd = -1, .size = size, .sums = sums };
	snprintf(vault->name, sizeof vault->name, "%s", name);
	vault->sums_count = (size_t)((size + VAULT_PAGE - 1) / VAULT_PAGE);
	vault->fd = file_open_in(directory, name, FILE_READ);
	if (vault->fd < 0 || !file_is_regular(vault->fd, &there))
		return err_errno(err, errno, "cannot open %s", name);
	if (there < size)
		return err_set(err, ERR_FORMAT, "%s is cut: %llu of %llu bytes", name,
			       (unsigned long long)there, (unsigned long long)size);
	vault->checked = mem_alloc(vault->sums_count + 1, 1);
	return true;
}

// What is in the file behind the whole pages was written after the moment that is gone back to; it
// is cut off, since its bytes come again.
bool vault_resume(struct vault *vault, int directory, const char *name, uint64_t size,
		  uint32_t *sums, size_t sums_count, const void *tail, size_t tail_size,
		  struct err *err)
{
	uint64_t written = size - tail_size;
	uint64_t there;

	*vault = (struct vault){ .fd = -1,
				 .size = size,
				 .sums = sums,
				 .sums_count = sums_count,
				 .sums_capacity = sums_count };
	snprintf(vault->name, sizeof vault->name, "%s", name);
	if (tail_size > size || tail_size > BUFFER || written != (uint64_t)sums_count * VAULT_PAGE)
		return err_set(err, ERR_FORMAT, "the index is damaged");
	vault->fd = file_open_in(directory, name, FILE_WRITE);
	if (vault->fd < 0 || !file_is_regular(vault->fd, &there))
		return err_errno(err, errno, "cannot open %s", name);
	if (there < written)
		return err_set(err, ERR_FORMAT, "%s is cut", name);
	if (!file_cut(vault->fd, written))
		return err_errno(err, errno, "cannot shorten %s", name);
	vault->buffer_size = BUFFER;
	vault->buffer = mem_alloc(1, BUFFER);
	memcpy(vault->buffer, tail, tail_size);
	vault->filled = tail_size;
	return true;
}

// A short write is gone on with; one of nothing is a full disk. The first error stays.
static void write_all(struct vault *vault, const uint8_t *bytes, size_t size)
{
	while (size > 0 && !vault->error) {
		ptrdiff_t wrote = file_write_some(vault->fd, bytes, size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			vault->error = wrote < 0 ? errno : ENOSPC;
			return;
		}
		bytes += wrote;
		size -= (size_t)wrote;
	}
}

// A sum for each page of the buffer, before it is written: what a disk gives back later is held
// against what was meant. Only the last page of all may be short (vault_finish).
static void flush(struct vault *vault)
{
	for (size_t at = 0; at < vault->filled; at += VAULT_PAGE) {
		size_t size = vault->filled - at < VAULT_PAGE ? vault->filled - at : VAULT_PAGE;

		*MEM_ADD(vault->sums, vault->sums_count, vault->sums_capacity) =
			crc32c(0, vault->buffer + at, size);
	}
	write_all(vault, vault->buffer, vault->filled);
	vault->filled = 0;
}

// After an error bytes are thrown away, but counted: vault_finish tells of it.
void vault_append(struct vault *vault, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	ASSERT(vault->fd >= 0);
	vault->size += size;
	while (size > 0) {
		size_t part = vault->buffer_size - vault->filled;

		if (part > size)
			part = size;
		memcpy(vault->buffer + vault->filled, from, part);
		vault->filled += part;
		from += part;
		size -= part;
		if (vault->filled == vault->buffer_size)
			flush(vault);
	}
}

bool vault_finish(struct vault *vault, struct err *err)
{
	ASSERT(vault->fd >= 0);
	flush(vault);
	mem_free(vault->buffer);
	vault->buffer = NULL;
	vault->buffer_size = 0;
	if (vault->error)
		return err_errno(err, vault->error, "cannot write %s", vault->name);
	mem_free(vault->checked);
	vault->checked = mem_alloc(vault->sums_count + 1, 1);
	return true;
}

static bool read_raw(const struct vault *vault, uint64_t at, uint8_t *out, size_t size,
		     struct err *err)
{
	ptrdiff_t got = file_read_at(vault->fd, out, size, at);

	if (got < 0)
		return err_errno(err, errno, "cannot read %s", vault->name);
	if ((size_t)got < size)
		return err_set(err, ERR_FORMAT, "%s is cut at byte %llu", vault->name,
			       (unsigned long long)(at + (uint64_t)got));
	return true;
}

// The whole pages are in the file, the rest is in the buffer still.
void *vault_copy(const struct vault *vault, struct err *err)
{
	size_t written = (size_t)vault->size - vault->filled;
	uint8_t *bytes = mem_resize(NULL, (size_t)vault->size + 1, 1);
	bool ok = read_raw(vault, 0, bytes, written, err);

	for (size_t page = 0; ok && page * VAULT_PAGE < written; page++)
		ok = crc32c(0, bytes + page * VAULT_PAGE, VAULT_PAGE) == vault->sums[page] ||
		     err_set(err, ERR_FORMAT, "%s is damaged", vault->name);
	if (!ok) {
		mem_free(bytes);
		return NULL;
	}
	memcpy(bytes + written, vault->buffer, vault->filled);
	return bytes;
}

// Read whole pages, which are of this vault, and check them.
static bool read_pages(struct vault *vault, uint64_t first, uint64_t end, uint8_t *out,
		       struct err *err)
{
	uint64_t at = first * VAULT_PAGE;
	uint64_t size = (end * VAULT_PAGE < vault->size ? end * VAULT_PAGE : vault->size) - at;

	if (!read_raw(vault, at, out, (size_t)size, err))
		return false;
	for (uint64_t page = first; page < end; page++) {
		const uint8_t *bytes = out + (page - first) * VAULT_PAGE;
		uint64_t left = vault->size - page * VAULT_PAGE;

		if (crc32c(0, bytes, left < VAULT_PAGE ? (size_t)left : VAULT_PAGE) !=
		    vault->sums[page])
			return err_set(err, ERR_FORMAT, "%s is damaged at byte %llu", vault->name,
				       (unsigned long long)(page * VAULT_PAGE));
		__atomic_store_n(&vault->checked[page], 1, __ATOMIC_RELAXED);
	}
	return true;
}

// The flags are set by any thread and never taken back: to miss one is to check a page twice.
static bool all_checked(const struct vault *vault, uint64_t first, uint64_t end)
{
	for (; first < end; first++)
		if (!__atomic_load_n(&vault->checked[first], __ATOMIC_RELAXED))
			return false;
	return true;
}

// A page that was checked once is not checked again: where all pages of a part were, its bytes go
// straight to `out`. Else whole pages are read into a buffer, checked, and what was asked for is
// copied. For example 100 bytes at 16,380: they are on pages 0 and 1, and 32 KiB are read the first
// time, 100 bytes the second.
bool vault_read(struct vault *vault, uint64_t at, void *out, size_t size, struct err *err)
{
	uint8_t *to = out, *pages = NULL;
	bool ok = true;

	if (at > vault->size || size > vault->size - at)
		return err_set(err, ERR_FORMAT, "%s has no byte %llu", vault->name,
			       (unsigned long long)(at + size));
	while (ok && size > 0) {
		uint64_t first = at / VAULT_PAGE, skip = at % VAULT_PAGE;
		size_t part = size < STRIDE ? size : STRIDE;
		uint64_t end = (at + part + VAULT_PAGE - 1) / VAULT_PAGE;

		if (all_checked(vault, first, end)) {
			ok = read_raw(vault, at, to, part, err);
		} else {
			if (!pages)
				pages = mem_resize(NULL, 1, STRIDE + 2 * VAULT_PAGE);
			ok = read_pages(vault, first, end, pages, err);
			if (ok)
				memcpy(to, pages + skip, part);
		}
		to += part;
		at += part;
		size -= part;
	}
	mem_free(pages);
	return ok;
}

void vault_close(struct vault *vault)
{
	if (vault->fd > 0)
		file_close(vault->fd);
	MEM_FREE(vault->sums, vault->buffer, vault->checked);
	*vault = (struct vault){ .fd = -1 };
}
