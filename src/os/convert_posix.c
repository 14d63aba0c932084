#include "os/convert.h"

#include "os/file.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char program[] = "rsvg-convert";

// Start it, reading from `fd`. Its own messages go to our stderr.
static bool start(int fd, const char *format, const char *path, pid_t *pid, struct err *err)
{
	char *const argv[] = { (char *)program, (char *)"-f", (char *)format,
			       (char *)"-o",    (char *)path, NULL };
	posix_spawn_file_actions_t actions;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	error = posix_spawnp(pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error == ENOENT)
		return err_set(err, ERR_IO,
			       "%s is needed to write %s (Debian: librsvg2-bin); an .svg needs "
			       "nothing",
			       program, format);
	return error == 0 || err_errno(err, error, "cannot run %s", program);
}

bool convert_svg(const void *svg, size_t size, const char *format, const char *path,
		 struct err *err)
{
	int status = 0;
	pid_t pid;
	int fd = file_temp(err);

	if (fd < 0)
		return false;
	if (!file_write_all(fd, svg, size, err) || lseek(fd, 0, SEEK_SET) != 0 ||
	    !start(fd, format, path, &pid, err)) {
		close(fd);
		return false;
	}
	close(fd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "cannot wait for %s", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, ERR_IO, "%s could not write %s", program, path);
	return true;
}
