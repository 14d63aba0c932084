#include "engine/vault.h"

#include "base/crc32c.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUFFER = VAULT_PAGE * 4, // written at once
	STRIDE = 1 << 20,        // read at once while checking
};

bool vault_create(struct vault *vault, int directory, const char *name, struct err *err)
{
	*vault = (struct vault){ .fd = -1 };
	snprintf(vault->name, sizeof vault->name, "%s", name);
	vault->fd = openat(directory, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (vault->fd < 0)
		return err_errno(err, errno, "cannot create %s", name);
	vault->buffer_size = BUFFER;
	vault->buffer = mem_alloc(1, BUFFER);
	return true;
}

bool vault_open(struct vault *vault, int directory, const char *name, uint64_t size, uint32_t *sums,
		struct err *err)
{
	struct stat stat;

	*vault = (struct vault){ .fd = -1, .size = size, .sums = sums };
	snprintf(vault->name, sizeof vault->name, "%s", name);
	vault->sums_count = (size_t)((size + VAULT_PAGE - 1) / VAULT_PAGE);
	vault->fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	if (vault->fd < 0 || fstat(vault->fd, &stat) < 0)
		return err_errno(err, errno, "cannot open %s", name);
	if ((uint64_t)stat.st_size < size)
		return err_set(err, ERR_FORMAT, "%s is cut: %llu of %llu bytes", name,
			       (unsigned long long)stat.st_size, (unsigned long long)size);
	vault->checked = mem_alloc(vault->sums_count + 1, 1);
	return true;
}

static void write_all(struct vault *vault, const uint8_t *bytes, size_t size)
{
	while (size > 0 && !vault->error) {
		ssize_t wrote = write(vault->fd, bytes, size);

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

static void flush(struct vault *vault)
{
	for (size_t at = 0; at < vault->filled; at += VAULT_PAGE) {
		size_t size = vault->filled - at < VAULT_PAGE ? vault->filled - at : VAULT_PAGE;

		vault->sums = mem_grow(vault->sums, &vault->sums_capacity, vault->sums_count + 1,
				       sizeof *vault->sums);
		vault->sums[vault->sums_count++] = crc32c(0, vault->buffer + at, size);
	}
	write_all(vault, vault->buffer, vault->filled);
	vault->filled = 0;
}

void vault_append(struct vault *vault, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

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
	while (size > 0) {
		ssize_t got = pread(vault->fd, out, size, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "cannot read %s", vault->name);
		if (got == 0)
			return err_set(err, ERR_FORMAT, "%s is cut at byte %llu", vault->name,
				       (unsigned long long)at);
		out += got;
		at += (uint64_t)got;
		size -= (size_t)got;
	}
	return true;
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

static bool all_checked(const struct vault *vault, uint64_t first, uint64_t end)
{
	for (; first < end; first++)
		if (!__atomic_load_n(&vault->checked[first], __ATOMIC_RELAXED))
			return false;
	return true;
}

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
		close(vault->fd);
	mem_free(vault->sums);
	mem_free(vault->buffer);
	mem_free(vault->checked);
	*vault = (struct vault){ .fd = -1 };
}
