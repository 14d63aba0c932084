#include "base/err.h"

const char *err_text(int number, char *buffer, size_t size)
{
	return strerror_s(buffer, size, number) == 0 ? buffer : "an unknown error";
}
