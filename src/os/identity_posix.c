#include "os/identity.h"

#include <errno.h>
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
