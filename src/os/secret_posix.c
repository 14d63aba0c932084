// secret_posix: the mode of a file says who may read it.
#include "os/secret.h"

#include "os/file.h"

#include <errno.h>
#include <sys/stat.h>

enum { SECRET_MAX = 64 << 10 };

// Refused, not warned about: a key that others could read is no secret any more.
bool secret_read(const char *path, struct str *text, struct err *err)
{
	struct stat known;

	if (stat(path, &known) != 0)
		return err_errno(err, errno, "cannot read %s", path);
	// The rights of group and others alone, whatever they are: also to write or to run.
	if (known.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(err, ERR_USAGE, "others may read %s (try: chmod 600 %s)", path,
			       path);
	return file_read_regular(path, SECRET_MAX, text, err) || err_wrap(err, "%s", path);
}
