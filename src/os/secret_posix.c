// secret_posix: the mode of a file says who may read it.
#include "os/secret.h"

#include "os/file.h"

#include <errno.h>
#include <sys/stat.h>

enum { SECRET_MAX = 64 << 10 };

// Refused, not warned about: a key that others could read is no secret any more.
bool secret_read(const char *path, struct str *text, struct err *err)
{
	int fd = file_open(path, FILE_READ);
	struct stat known;
	bool good;

	// The file that is asked about is the one that is read.
	if (fd < 0 || fstat(fd, &known) != 0)
		good = err_errno(err, errno, "cannot read %s", path);
	// The rights of group and others alone, whatever they are: also to write or to run.
	else if (known.st_mode & (S_IRWXG | S_IRWXO))
		good = err_set(err, ERR_USAGE, "others may read %s (try: chmod 600 %s)", path,
			       path);
	else
		good = file_read_open(fd, SECRET_MAX, text, err) || err_wrap(err, "%s", path);
	file_close(fd);
	return good;
}
