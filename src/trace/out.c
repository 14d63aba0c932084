#include "trace/out.h"

#include "base/mem.h"
#include "os/file.h"

#include <errno.h>

// Room is asked for in steps of this, so that it costs a system call only now and then.
enum { RESERVE_BYTES = 4 << 20 };

// `size` begins at that of the file: a bundle is appended to one that has something.
void out_init(struct out *out, int fd)
{
	uint64_t limit = file_limit();

	*out = (struct out){ .fd = fd, .limit = UINT64_MAX };
	out->regular = out->reserves = file_is_regular(fd, &out->size);
	if (out->regular)
		file_claim(fd);
	if (out->regular && limit != UINT64_MAX)
		out->limit = limit > OUT_ROOM_BYTES ? limit - OUT_ROOM_BYTES : 0;
}

// Make sure that `size` bytes fit and leave room behind them. Where the file system cannot
// promise that, the write itself will tell.
// The step of 4 MiB saves system calls; a disk that has less is asked for exactly what the block
// needs. A file system that knows no reservation is asked once. False: the disk is full, or the
// file may not grow so far.
static bool out_reserve(struct out *out, size_t size, struct err *err)
{
	uint64_t need = out->size + size + OUT_ROOM_BYTES;

	if (out->size + size > out->limit)
		return err_errno(err, EFBIG, "cannot write the trace");
	if (!out->reserves || need <= out->reserved)
		return true;
	// A generous step first; on a disk that is nearly full, exactly what is needed.
	for (int step = 0; step < 2; step++) {
		uint64_t more = need - out->size + (step == 0 ? RESERVE_BYTES : 0);

		if (file_reserve(out->fd, out->size, more)) {
			out->reserved = out->size + more;
			return true;
		}
		if (errno == EINTR)
			step--;
		else if (!file_is_full(errno))
			break;
		else if (step == 1)
			return err_errno(err, errno, "cannot write the trace");
	}
	out->reserves = false;
	return true;
}

// A block is in the file whole or not at all: after a failure the part that was written is cut off.
// A write of 0 bytes counts as an I/O error, for no loop can go on from it.
bool out_write(struct out *out, const void *bytes, size_t size, bool last, struct err *err)
{
	const char *at = bytes;
	size_t left = size;

	ASSERT(bytes || size == 0);
	if (!last && out->regular && !out_reserve(out, size, err))
		return false;
	while (left > 0) {
		ptrdiff_t got = file_write_some(out->fd, at, left);

		if (got > 0) {
			at += got;
			left -= (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			int why = got == 0 ? EIO : errno;
			struct err ignored;

			if (out->regular)
				out_cut(out, out->size, &ignored);
			return err_errno(err, why, "cannot write the trace");
		}
	}
	out->size += size;
	return true;
}

// What was reserved behind the cut is gone with it.
bool out_cut(struct out *out, uint64_t size, struct err *err)
{
	if (!file_cut(out->fd, size))
		return err_errno(err, errno, "cannot shorten the trace");
	out->size = size;
	out->reserved = 0;
	return true;
}

void out_finish(struct out *out)
{
	// Cutting a file to its own size frees what lies behind its end.
	if (out->regular && out->reserved > out->size && file_cut(out->fd, out->size))
		out->reserved = 0;
}
