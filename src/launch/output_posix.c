#include "launch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open(const char *path, bool force, bool *created)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_EXCL, 0600);

	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST || !force)
		return fd;
	fd = open(path, flags | O_TRUNC, 0600);
	if (fd < 0 && errno == EACCES) // a pipe or a device that may only be written
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd;
}

void output_host(char *host, size_t room)
{
	gethostname(host, room - 1);
}
