// The device and the inode are what the kernel itself tells files apart by. A number is used again
// after a file is removed, so size and time of change are held against it, too.
#include "os/identity.h"

#include <errno.h>
#include <sys/stat.h>

bool identity_find(struct identity *identity, const char *path, struct err *err)
{
	struct stat status;

	if (stat(path, &status) != 0)
		return err_errno(err, errno, "cannot look at %s", path);
	// Of what a link leads to: traces are often reached by one ("latest.tide").
	*identity = (struct identity){
		.device = status.st_dev,
		.number = status.st_ino,
		.size_bytes = (uint64_t)status.st_size,
		.changed_s = status.st_mtim.tv_sec,
		.changed_ns = status.st_mtim.tv_nsec,
	};
	return true;
}
