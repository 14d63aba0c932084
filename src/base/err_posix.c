// GNU's strerror_r: it returns the text, which is its own where it has one, and in `buffer` else.
// (The one of POSIX returns a number.)
#include "base/err.h"

#include <string.h>

const char *err_text(int number, char *buffer, size_t size)
{
	return strerror_r(number, buffer, size);
}
