// The picture goes through a file without a name to the program's standard input, not through a
// pipe: a program that stops reading would leave us writing for ever.
#include "os/convert.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/tool.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char program[] = "rsvg-convert";

bool convert_check(const char *format, struct err *err)
{
	return tool_find(program) ||
	       err_set(err, ERR_IO,
		       "%s is needed to write %s (Debian: librsvg2-bin); an .svg needs nothing",
		       program, format);
}

// Start it, between two descriptors. Its own messages go to our stderr.
static bool start(int in, int out, const char *format, pid_t *pid, struct err *err)
{
	char *const argv[] = { (char *)program, (char *)"-f", (char *)format, NULL };
	posix_spawn_file_actions_t actions;
	int error;

	ASSERT(in >= 0 && out >= 0);
	posix_spawn_file_actions_init(&actions);
	// The copies are open after the exec, though `in` and `out` themselves are closed by it.
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	error = posix_spawnp(pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return error == 0 || err_errno(err, error, "cannot run %s", program);
}

// The program writes straight to `fd`. Its exit code says whether the picture is there.
bool convert_svg(const void *svg, size_t size, const char *format, int fd, struct err *err)
{
	int status = 0;
	pid_t pid;
	int in;

	if (!convert_check(format, err))
		return false;
	in = file_temp(err);
	if (in < 0)
		return false;
	// The offset is one for all copies of a descriptor: what was written is read from the
	// beginning only after it was moved back.
	if (!file_write_all(in, svg, size, err) || lseek(in, 0, SEEK_SET) != 0 ||
	    !start(in, fd, format, &pid, err)) {
		close(in);
		return false;
	}
	close(in);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_errno(err, errno, "cannot wait for %s", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(err, ERR_IO, "%s could not write the picture", program);
	return true;
}
