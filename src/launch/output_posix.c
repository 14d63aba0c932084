// O_EXCL in the first try: of two recordings that want one name at the same time, one gets it and
// the other takes the next number. 0600, since a trace has the program's arguments and paths.
#include "launch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_open(const char *path, bool force, bool *created)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY;
	int fd = open(path, flags | O_EXCL, 0600);

	// A file that was there is overwritten only with --force, and is not removed when the start
	// fails.
	*created = fd >= 0;
	if (fd >= 0 || errno != EEXIST || !force)
		return fd;
	fd = open(path, flags | O_TRUNC, 0600);
	if (fd < 0 && errno == EACCES) // a device that may only be written
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd;
}

bool output_is_plain(const char *path)
{
	struct stat file;

	// A link, or a file with a second name, is the user's own arrangement: it is written
	// through and not replaced.
	return lstat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
}

static bool same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

// As it is, or as the value of an option (--in=FILE).
static bool is_named(const struct stat *file, const char *argument)
{
	const char *value = strchr(argument, '=');
	struct stat other;

	return (stat(argument, &other) == 0 && same(file, &other)) ||
	       (value && stat(value + 1, &other) == 0 && same(file, &other));
}

const char *output_is_its(const char *path, const char *program, char *const *args)
{
	static const char *const streams[] = { "the program's input", "the program's output",
					       "the program's errors" };
	struct stat file, other;

	// /dev/null as the trace, and as the program's output, disturbs neither.
	if (stat(path, &file) != 0 || (stat("/dev/null", &other) == 0 && same(&file, &other)))
		return NULL;
	if (stat(program, &other) == 0 && same(&file, &other))
		return "the program itself";
	for (size_t i = 1; args && args[0] && args[i]; i++)
		if (is_named(&file, args[i]))
			return "what the program is given as an argument";
	for (int fd = 0; fd < (int)(sizeof streams / sizeof *streams); fd++)
		if (fstat(fd, &other) == 0 && same(&file, &other))
			return streams[fd];
	return NULL;
}

const char *output_is_waited_for(const char *path)
{
	struct stat file;
	bool terminal;
	int fd;

	if (stat(path, &file) != 0)
		return NULL;
	if (S_ISFIFO(file.st_mode))
		return "a pipe, and the program would have to wait for who reads it";
	if (!S_ISCHR(file.st_mode))
		return NULL;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	terminal = fd >= 0 && isatty(fd);
	if (fd >= 0)
		close(fd);
	return terminal ? "a terminal" : NULL;
}

void output_host(char *host, size_t room)
{
	gethostname(host, room - 1);
}
