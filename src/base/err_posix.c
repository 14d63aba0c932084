#include "base/err.h"

#include <string.h>

const char *err_text(int number, char *buffer, size_t size)
{
	return strerror_r(number, buffer, size);
}
