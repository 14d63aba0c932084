#include "os/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16 };

// What an empty view shows: an address that is nobody's memory to give back.
static const uint8_t nothing[1];

bool file_view_open(struct file_view *view, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	ok = file_view_fd(view, fd, err);
	close(fd);
	return ok || err_wrap(err, "cannot read %s", path);
}

// Read what cannot be mapped into memory that is given back like a mapping.
static bool view_by_reading(struct file_view *view, int fd, struct err *err)
{
	struct str text = { 0 };
	void *bytes;

	if (!file_read_all(fd, &text, err)) {
		str_fini(&text);
		return false;
	}
	if (text.length == 0) {
		str_fini(&text);
		*view = (struct file_view){ .bytes = nothing };
		return true;
	}
	bytes = mmap(NULL, text.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED) {
		str_fini(&text);
		return err_errno(err, errno, "cannot map memory");
	}
	memcpy(bytes, text.text, text.length);
	*view = (struct file_view){ .bytes = bytes, .size = text.length };
	str_fini(&text);
	return true;
}

bool file_view_fd(struct file_view *view, int fd, struct err *err)
{
	struct stat status;
	void *bytes;

	if (fstat(fd, &status) != 0)
		return err_errno(err, errno, "cannot find its size");
	if (S_ISDIR(status.st_mode))
		return err_set(err, ERR_IO, "it is a directory");
	// Files of /proc are regular and say that they are empty.
	if (!S_ISREG(status.st_mode) || status.st_size == 0)
		return view_by_reading(view, fd, err);
	if ((uint64_t)status.st_size > SIZE_MAX)
		return err_set(err, ERR_IO, "too large for this machine's addresses");
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_errno(err, errno, "cannot map it");
	*view = (struct file_view){ .bytes = bytes, .size = (size_t)status.st_size };
	return true;
}

void file_view_close(struct file_view *view)
{
	if (view->size > 0)
		munmap((void *)view->bytes, view->size);
	*view = (struct file_view){ 0 };
}

bool file_read_all(int fd, struct str *out, struct err *err)
{
	char *buffer = mem_alloc(READ_BYTES, 1);
	ssize_t got;

	for (;;) {
		got = read(fd, buffer, READ_BYTES);
		if (got > 0)
			str_add_bytes(out, buffer, (size_t)got);
		else if (got == 0 || errno != EINTR)
			break;
	}
	mem_free(buffer);
	return got == 0 || err_errno(err, errno, "cannot read");
}

bool file_write_all(int fd, const void *bytes, size_t size, struct err *err)
{
	const char *at = bytes;

	while (size > 0) {
		ssize_t put = write(fd, at, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_errno(err, errno, "cannot write");
		at += put;
		size -= (size_t)put;
	}
	return true;
}

// For file systems that know no file without a name.
static int temp_by_unlinking(const char *folder, struct err *err)
{
	struct str path = { 0 };
	int fd;

	str_format(&path, "%s/tidemark-XXXXXX", folder);
	fd = mkostemp(path.text, O_CLOEXEC);
	if (fd < 0)
		err_errno(err, errno, "cannot create a temporary file in %s", folder);
	else
		unlink(path.text);
	str_fini(&path);
	return fd;
}

int file_temp(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	if (!folder || !*folder)
		folder = "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	return fd >= 0 ? fd : temp_by_unlinking(folder, err);
}
