// A tool that is run has no input, and what it says on stderr is read to its end, for the message:
// a tool that failed says why. For example, gnuplot that is not there: TOOL_MISSING, as
// posix_spawnp says ENOENT, and the caller names the package.
#include "os/tool.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/quit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// An empty part of PATH is the folder that we are in.
bool tool_find(const char *name)
{
	const char *path = getenv("PATH");
	struct str program = { 0 };
	struct stat status;
	bool found = false;

	// As execvp looks where there is no PATH.
	for (path = path ? path : "/bin:/usr/bin"; *path && !found;) {
		size_t length = strcspn(path, ":");

		str_clear(&program);
		str_add_bytes(&program, path, length);
		str_format(&program, "%s%s", length ? "/" : "./", name);
		// Rights are looked at, not what is in the file: whether it can be run is seen when
		// it is run. A folder has the same right for another reason.
		found = access(str_get(&program), X_OK) == 0 &&
			stat(str_get(&program), &status) == 0 && S_ISREG(status.st_mode);
		path += length + (path[length] == ':');
	}
	str_fini(&program);
	return found;
}

// posix_spawn and not fork: we may have gigabytes mapped, whose tables a fork would copy.
static int spawn(const char *const *arguments, int said_fd, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int number;

	posix_spawn_file_actions_init(&actions);
	// What it prints to its standard output would be mixed with our answer.
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, said_fd, STDERR_FILENO);
	number = posix_spawnp(pid, arguments[0], &actions, NULL, (char *const *)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return number;
}

static enum tool_result wait_for(pid_t pid, const char *name, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno == EINTR)
			continue;
		err_errno(err, errno, "cannot wait for %s", name);
		return TOOL_FAILED;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return TOOL_DONE;
	if (WIFEXITED(status))
		err_set(err, ERR_IO, "%s ended with exit code %d", name, WEXITSTATUS(status));
	else
		err_set(err, ERR_IO, "%s was ended by signal %d", name, WTERMSIG(status));
	return TOOL_FAILED;
}

// What it says is read to its end before it is waited for: a full pipe would stop it.
enum tool_result tool_run(const char *const *arguments, struct str *said, struct err *err)
{
	enum tool_result result;
	struct err ignored;
	int ends[2];
	pid_t pid;
	int number;

	ASSERT(arguments[0] != NULL);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		err_errno(err, errno, "cannot run %s", arguments[0]);
		return TOOL_FAILED;
	}
	number = spawn(arguments, ends[1], &pid);
	close(ends[1]);
	if (number == 0) {
		// To its end, which is when the program, and whatever it started with the same
		// stderr, has closed it.
		file_read_all(ends[0], said, &ignored);
		result = wait_for(pid, arguments[0], err);
	} else {
		// posix_spawnp reports a failed exec by its return value: no child is left then.
		result = number == ENOENT ? TOOL_MISSING : TOOL_FAILED;
		err_errno(err, number, "cannot run %s", arguments[0]);
	}
	close(ends[0]);
	return result;
}

// Apart from us and our terminal; what it writes is lost.
// In a session of its own, so that Ctrl-C here does not end it; nothing waits for it.
static bool start_apart(const char *const *arguments, struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t pid;
	int number;

	ASSERT(arguments[0] != NULL);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	number = posix_spawnp(&pid, arguments[0], &actions, &attributes, (char *const *)arguments,
			      environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return number == 0 || err_errno(err, number, "cannot start %s", arguments[0]);
}

bool tool_opens(void)
{
	return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY");
}

bool tool_open(const char *path, struct err *err)
{
	return start_apart((const char *[]){ "xdg-open", path, NULL }, err);
}

bool tool_folder(struct str *path, struct err *err)
{
	const char *in = getenv("TMPDIR");

	// mkdtemp puts six letters in place of the X's, and makes it for its owner alone (0700).
	str_format(path, "%s/tidemark.XXXXXX", in && *in ? in : "/tmp");
	ASSERT(path->length > 6);
	if (mkdtemp(path->text)) {
		quit_removes(path->text);
		return true;
	}
	err_errno(err, errno, "cannot make %s", path->text);
	str_fini(path);
	return false;
}

void tool_folder_leave(struct str *path)
{
	if (path->length > 0) {
		// First the folder, then it is no longer remembered for a signal: the other order
		// could leave it.
		file_remove_folder(path->text);
		quit_keeps(path->text);
	}
	str_fini(path);
}

// Whether malloc is neither libc's nor of our own recorder.
// By the file that the loader finds malloc in, held against the one that is surely libc's.
static bool malloc_is_taken(void)
{
	Dl_info allocator, libc;
	const char *name;

	// dli_fbase is where an object is mapped: two addresses with the same base are in the same
	// file.
	if (!dladdr(dlsym(RTLD_DEFAULT, "malloc"), &allocator) ||
	    !dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc))
		return false;
	name = strrchr(allocator.dli_fname, '/');
	return allocator.dli_fbase != libc.dli_fbase &&
	       strncmp(name ? name + 1 : allocator.dli_fname, "libtidemark", 11) != 0;
}

// Whether we were started with LD_PRELOAD: it may have been removed from our environment since.
// /proc/self/environ is what we were started with, whatever was changed since.
static bool was_preloaded(void)
{
	static const char name[] = "LD_PRELOAD=";
	FILE *file = fopen("/proc/self/environ", "re");
	char *entry = NULL;
	size_t room = 0;
	bool found = false;

	while (file && !found && getdelim(&entry, &room, '\0', file) > 0)
		found = strncmp(entry, name, sizeof name - 1) == 0 && entry[sizeof name - 1];
	free(entry);
	if (file)
		fclose(file);
	return found;
}

// The list is carried in another variable over the exec, and put back there, for the programs that
// we start.
void tool_leave_preloaded(char **argv)
{
	static const char kept_name[] = "TIDEMARK_PRELOAD"; // what is to stand in LD_PRELOAD again
	const char *kept = getenv(kept_name), *list = getenv("LD_PRELOAD");
	char self[PATH_MAX] = "";

	// The variable says that this is the second start, and carries the list to it. If the exec
	// fails, what was set is undone below.
	if (!kept && was_preloaded() && malloc_is_taken() &&
	    readlink("/proc/self/exe", self, sizeof self - 1) > 0 &&
	    setenv(kept_name, list ? list : "", 1) == 0) {
		unsetenv("LD_PRELOAD");
		execv(self, argv);
		kept = getenv(kept_name);
	}
	if (kept && kept[0])
		setenv("LD_PRELOAD", kept, 1);
	unsetenv(kept_name);
}

uint32_t tool_own_pid(void)
{
	return (uint32_t)getpid();
}

uint64_t tool_own_resident_max(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

char **tool_arguments(int *, char **argv)
{
	return argv;
}
