// secret_win32: who may read a file is not looked at.
#include "os/secret.h"

#include "os/file.h"

enum { SECRET_MAX = 64 << 10 };

bool secret_read(const char *path, struct str *text, struct err *err)
{
	return file_read_regular(path, SECRET_MAX, text, err) || err_wrap(err, "%s", path);
}
