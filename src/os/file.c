#include "os/file.h"

#include "base/mem.h"

#include <errno.h>

// The size is asked before the reading, for files that are meant to be small: settings, secrets.
// By the descriptor and not by the path, which may lead elsewhere by now.
bool file_read_open(int fd, size_t size_max, struct str *out, struct err *err)
{
	uint64_t size;

	if (!file_is_regular(fd, &size))
		return err_set(err, ERR_IO, "it is not a regular file");
	if (size > size_max)
		return err_set(err, ERR_IO, "it is larger than %zu bytes", size_max);
	return file_read_all(fd, out, err);
}

bool file_read_regular(const char *path, size_t size_max, struct str *out, struct err *err)
{
	int fd = file_open(path, FILE_READ);
	bool good;

	if (fd < 0)
		return err_errno(err, errno, "cannot open it");
	good = file_read_open(fd, size_max, out, err);
	file_close(fd);
	return good;
}

// A signal between two writes is no failure; a write of nothing is.
bool file_write_all(int fd, const void *bytes, size_t size, struct err *err)
{
	const char *at = bytes;

	ASSERT(fd >= 0);
	while (size > 0) {
		ptrdiff_t put = file_write_some(fd, at, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_errno(err, put < 0 ? errno : EIO, "cannot write");
		ASSERT((size_t)put <= size);
		at += put;
		size -= (size_t)put;
	}
	return true;
}

// Each part is looked for before it is made, and after it could not be: another process may have
// made it in between.
bool file_cache_folder(const char *name, struct str *path)
{
	const char *const parts[] = { "", "/tidemark", *name ? "/" : "", name };
	char *caches = file_caches();
	bool good = caches != NULL;

	if (!good)
		return false;
	str_add(path, caches);
	mem_free(caches);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		str_add(path, parts[i]);
		// Part 2 is only the slash before a name.
		good = good && (i == 2 || file_look(path->text) == FILE_IS_FOLDER ||
				file_make_folder(path->text, true) ||
				file_look(path->text) == FILE_IS_FOLDER);
	}
	return good;
}
