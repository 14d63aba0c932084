// Each read goes to the file by offset (pread), so threads may share a descriptor, and nothing maps
// the file: a mapping of a file that is cut while it is read would end the program with SIGBUS.
#include "trace/store.h"

#include "base/mem.h"
#include "os/file.h"

#include <errno.h>

bool store_open(struct store *store, const char *path, struct err *err)
{
	store->fd = file_open(path, FILE_READ);
	if (store->fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	// Asked before the size: who is gone by then has left the end of the trace in the file.
	store->written = file_is_claimed(store->fd);
	if (!file_is_regular(store->fd, &store->size)) {
		store_close(store);
		return err_set(err, ERR_FORMAT, "%s is not a trace: not a regular file", path);
	}
	return true;
}

void store_close(struct store *store)
{
	file_close(store->fd);
	store->fd = -1;
}

void store_grown(struct store *store)
{
	uint64_t size;

	store->written = file_is_claimed(store->fd);
	if (file_is_regular(store->fd, &size) && size > store->size)
		store->size = size;
}

// A read that fails gives 0 bytes: to a reader a bad sector is damage like any other, and is named
// where it is.
size_t store_read(const struct store *store, uint64_t at, void *out, size_t size)
{
	ptrdiff_t got;

	ASSERT(store->fd >= 0);
	// The file may have grown since: what is read is what it was when it was opened.
	if (at >= store->size)
		return 0;
	if (size > store->size - at)
		size = (size_t)(store->size - at);
	got = file_read_at(store->fd, out, size, at);
	return got > 0 ? (size_t)got : 0;
}
