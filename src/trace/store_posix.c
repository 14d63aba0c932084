#include "trace/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool store_open(struct store *store, const char *path, struct err *err)
{
	struct stat stat;

	// Without O_NONBLOCK, opening a FIFO would wait for somebody to write to it.
	store->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (store->fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	if (fstat(store->fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
		store_close(store);
		return err_set(err, ERR_FORMAT, "%s is not a trace: not a regular file", path);
	}
	store->size = (uint64_t)stat.st_size;
	return true;
}

void store_close(struct store *store)
{
	if (store->fd >= 0)
		close(store->fd);
	store->fd = -1;
}

size_t store_read(const struct store *store, uint64_t at, void *out, size_t size)
{
	size_t done = 0;

	// The file may have grown since: what is read is what it was when it was opened.
	if (at >= store->size)
		return 0;
	if (size > store->size - at)
		size = (size_t)(store->size - at);
	while (done < size) {
		ssize_t got = pread(store->fd, (char *)out + done, size - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}
