// GNU's strerror_r: it returns the text, which is its own where it has one, and in `buffer` else.
// (The one of POSIX returns a number.) Where a limit is the reason, what to change is said.
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *err_text(int number, char *buffer, size_t size)
{
	const char *why = number == EMFILE   ? "ulimit -n"
			  : number == EAGAIN ? "too many processes? ulimit -u, pids.max"
					     : NULL;
	char text[64];

	if (!why)
		return strerror_r(number, buffer, size);
	snprintf(buffer, size, "%s (%s)", strerror_r(number, text, sizeof text), why);
	return buffer;
}
