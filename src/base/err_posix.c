// GNU's strerror_r: it returns the text, which is its own where it has one, and in `buffer` else.
// (The one of POSIX returns a number.)
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *err_text(int number, char *buffer, size_t size)
{
	char text[64];

	if (number != EMFILE)
		return strerror_r(number, buffer, size);
	snprintf(buffer, size, "%s (ulimit -n)", strerror_r(number, text, sizeof text));
	return buffer;
}
