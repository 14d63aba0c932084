// The C library of Windows knows errno values as POSIX does; what Windows itself says was made one
// of them before (os/file_win32.c).
#include "base/err.h"

const char *err_text(int number, char *buffer, size_t size)
{
	return strerror_s(buffer, size, number) == 0 ? buffer : "an unknown error";
}
