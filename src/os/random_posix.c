// getrandom waits only until the generator was seeded once after the machine's start, and needs no
// descriptor. Above 256 bytes a signal may make it return less, hence the loop.
#include "os/random.h"

#include <errno.h>
#include <sys/random.h>

bool random_bytes(void *bytes, size_t size, struct err *err)
{
	char *at = bytes;

	// Zero bytes got is not a thing that the call does; it would loop, so it is an error.
	while (size > 0) {
		ssize_t got = getrandom(at, size, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_errno(err, errno, "cannot get random bytes");
		at += got;
		size -= (size_t)got;
	}
	return true;
}
