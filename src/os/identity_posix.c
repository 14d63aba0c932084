#include "os/identity.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool identity_find(struct identity *identity, const char *path, struct err *err)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return err_errno(err, errno, "cannot look at %s", path);
	*identity = (struct identity){
		.device = status.st_dev,
		.number = status.st_ino,
		.size_bytes = (uint64_t)status.st_size,
		.changed_s = status.st_mtim.tv_sec,
		.changed_ns = status.st_mtim.tv_nsec,
	};
	return true;
}

bool identity_holds(const struct identity *identity, const char *path)
{
	struct identity now;
	struct err ignored;

	return identity_find(&now, path, &ignored) && now.device == identity->device &&
	       now.number == identity->number && now.size_bytes == identity->size_bytes &&
	       now.changed_s == identity->changed_s && now.changed_ns == identity->changed_ns;
}
