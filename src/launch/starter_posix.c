// The child is forked before there is a recording, and waits at a pipe for one byte. Another pipe,
// closed on exec, brings its errno back: 4 bytes say that the exec failed, and an end without any
// that it succeeded. For example, a program whose arguments leave no room for LD_PRELOAD: E2BIG, so
// the child writes -1, tries once more in the environment without us, and the end of the pipe says
// that this time it went well; `bare` is set, for nothing will be recorded.
#include "launch/starter_posix.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTER_BARE = -1 }; // where an errno is read: it is tried in the other environment

// As execvp does: a file that the kernel does not know is a script for the shell.
static void starter_execute(const char *path, char *const *argv, char *const *environment)
{
	size_t count = 0;
	char **words;

	execve(path, argv, environment);
	if (errno != ENOEXEC)
		return;
	while (argv[count])
		count++;
	// /bin/sh, the file, the arguments: one more than before, and the end.
	words = mem_alloc(count + 2, sizeof(*words));
	words[0] = (char *)"/bin/sh";
	words[1] = (char *)path;
	for (size_t i = 1; i < count; i++)
		words[i + 1] = argv[i];
	execve("/bin/sh", words, environment);
	mem_free(words);
	errno = ENOEXEC;
}

_Noreturn static void starter_child(int go_fd, int error_fd, const char *path, char *const *argv,
				    char *const *environment, char *const *bare_environment)
{
	const int bare = STARTER_BARE;
	char go;
	ssize_t got;
	int error;

	// A byte is the word to go. The end of the pipe without one is the launcher's: it
	// cancelled, or died, and a program that would not be recorded is not started either.
	do {
		got = read(go_fd, &go, 1);
	} while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0); // cancelled, or the launcher is gone
	starter_execute(path, argv, environment);
	if (errno == E2BIG && bare_environment &&
	    write(error_fd, &bare, sizeof(bare)) == (ssize_t)sizeof(bare))
		starter_execute(path, argv, bare_environment);
	error = errno;
	// 126 and 127 as a shell has them; the launcher takes the errno, not these.
	if (write(error_fd, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

bool starter_fork(struct starter *starter, const char *path, char *const *argv,
		  char *const *environment, char *const *bare_environment, struct err *err)
{
	int go[2];
	int error[2];

	ASSERT(argv[0] != NULL && starter->pid == 0);
	if (pipe2(go, O_CLOEXEC) != 0)
		return err_errno(err, errno, "cannot make a pipe");
	if (pipe2(error, O_CLOEXEC) != 0) {
		close(go[0]);
		close(go[1]);
		return err_errno(err, errno, "cannot make a pipe");
	}
	starter->pid = fork();
	if (starter->pid == 0) {
		// Its own copies of our ends would keep both pipes from ever ending.
		close(go[1]);
		close(error[0]);
		starter_child(go[0], error[1], path, argv, environment, bare_environment);
	}
	close(go[0]);
	close(error[1]);
	starter->go_fd = go[1];
	starter->error_fd = error[0];
	if (starter->pid > 0)
		return true;
	close(go[1]);
	close(error[0]);
	starter->pid = 0;
	return err_errno(err, errno, "cannot start a process");
}

static void starter_reap(struct starter *starter)
{
	ASSERT(starter->pid > 0);
	while (waitpid(starter->pid, NULL, 0) < 0 && errno == EINTR)
		;
	starter->pid = 0;
}

int starter_go(struct starter *starter, void (*meanwhile)(void *context), void *context)
{
	int error = 0;
	ssize_t got;

	ASSERT(starter->pid > 0 && starter->go_fd >= 0);
	// A child that is gone already is found by the process that waits for it.
	// It was written to a pipe whose other end may be gone: SIGPIPE is ignored
	// (launch_linux.c).
	got = write(starter->go_fd, "g", 1);
	close(starter->go_fd);
	if (meanwhile)
		meanwhile(context);
	do {
		got = read(starter->error_fd, &error, sizeof(error));
		starter->bare |= got == (ssize_t)sizeof(error) && error == STARTER_BARE;
	} while (got < 0 ? errno == EINTR : got == (ssize_t)sizeof(error) && error == STARTER_BARE);
	close(starter->error_fd);
	starter->go_fd = starter->error_fd = -1;
	if (got != (ssize_t)sizeof(error))
		return 0;
	starter_reap(starter);
	return error;
}

void starter_cancel(struct starter *starter)
{
	if (starter->pid <= 0 || starter->go_fd < 0)
		return;
	close(starter->go_fd);
	close(starter->error_fd);
	starter->go_fd = starter->error_fd = -1;
	// It is not the program yet. It ends by itself, but not while another process has our end.
	kill(starter->pid, SIGKILL);
	starter_reap(starter);
}
