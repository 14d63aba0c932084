#include "trace/fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool taken(const char *path, struct err *err)
{
	err_set(err, ERR_IO, "%s exists already (--force overwrites it)", path);
	return true;
}

bool fresh_open(struct fresh *fresh, const char *path, bool replace, struct err *err)
{
	struct stat stat_;
	bool there = stat(path, &stat_) == 0;

	*fresh = (struct fresh){ .fd = -1, .replace = replace };
	str_add(&fresh->path, path);
	if (there && !S_ISREG(stat_.st_mode)) {
		fresh->fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		if (there && !replace && taken(path, err))
			return false;
		str_format(&fresh->temporary, "%s.%ld.part", path, (long)getpid());
		fresh->fd =
			open(fresh->temporary.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	return fresh->fd >= 0 || err_errno(err, errno, "cannot write %s", path);
}

// Rename, refusing a name that has been taken meanwhile.
static int rename_to_free(const char *from, const char *to)
{
	struct stat ignored;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	// A file system that cannot do it in one step.
	if (lstat(to, &ignored) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(from, to);
}

bool fresh_keep(struct fresh *fresh, struct err *err)
{
	const char *path = fresh->path.text;
	int fd = fresh->fd;
	int failed;

	fresh->fd = -1;
	if (close(fd) != 0)
		return err_errno(err, errno, "cannot write %s", path);
	if (fresh->temporary.length == 0)
		return true;
	failed = fresh->replace ? rename(fresh->temporary.text, path)
				: rename_to_free(fresh->temporary.text, path);
	if (failed && errno == EEXIST)
		return !taken(path, err);
	if (failed)
		return err_errno(err, errno, "cannot write %s", path);
	str_clear(&fresh->temporary);
	return true;
}

void fresh_close(struct fresh *fresh)
{
	if (fresh->fd >= 0)
		close(fresh->fd);
	if (fresh->temporary.length > 0)
		unlink(fresh->temporary.text);
	fresh->fd = -1;
	str_fini(&fresh->temporary);
	str_fini(&fresh->path);
}
