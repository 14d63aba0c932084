// out: the file under a writer. Bytes arrive whole or not at all.
//
// While there is space it keeps OUT_ROOM_BYTES free after the data, where the file system lets
// it, so that a full disk still leaves room for the trace's last words. When a write fails, a
// regular file is cut back to what was whole before it. A pipe is written to as it comes.
//
// A regular file is claimed (os/file.h) until its descriptor is closed: readers that meet no end
// tell so whether it is cut or still being written.
//
// The process must ignore SIGPIPE and SIGXFSZ: here a closed pipe and a size limit are errors
// like any other.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { OUT_ROOM_BYTES = 64 << 10 };

struct out {
	int fd;            // borrowed
	bool regular;      // can be cut back
	bool reserves;     // the file system takes reservations
	uint64_t size;     // bytes written
	uint64_t reserved; // the file system has promised room up to here
	uint64_t limit;    // what files may grow to, less the room for the last words
};

void out_init(struct out *out, int fd);

// Append all of it. False if it did not fit: nothing of it is in the file then. `last` may use
// the room that is kept free.
bool out_write(struct out *out, const void *bytes, size_t size, bool last, struct err *err);

// Cut a regular file back to its first `size` bytes.
bool out_cut(struct out *out, uint64_t size, struct err *err);

// Give back what was reserved and not used.
void out_finish(struct out *out);
