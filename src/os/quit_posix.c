// Two ways that do not go together. A server blocks the signals and waits for one (quit_watch,
// quit_wait). A command that has begun a file lets a handler remove it (quit_removes): the handler
// only calls what may be called there, and then raises the signal again, so that the parent sees by
// what we ended.
#include "os/quit.h"

#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MAX = 8 };

static const char *volatile files[FILES_MAX]; // that are removed; NULL: free

// A folder may have anything in it, by other programs too, and a signal handler can list none.
// vfork and exec may be called in a handler, and rm knows what is in the folder.
static void remove_folder(const char *path)
{
	// fork would run handlers of the library (pthread_atfork) which may take locks that the
	// interrupted thread holds.
	pid_t child = vfork();

	if (child == 0) {
		execl("/bin/rm", "rm", "-rf", "--", path, NULL);
		_exit(127);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void remove_and_end(int number)
{
	for (size_t i = 0; i < FILES_MAX; i++)
		if (files[i] != NULL && unlink(files[i]) != 0 && errno != ENOENT)
			remove_folder(files[i]);
	signal(number, SIG_DFL);
	raise(number); // it comes when we return
}

// A signal that is ignored (nohup) or has a handler already stays as it is.
static void end_so(int number)
{
	struct sigaction action = { .sa_handler = remove_and_end };
	struct sigaction before;

	// A second signal, of this kind or another, waits until all is removed; what removes a
	// folder inherits that.
	sigfillset(&action.sa_mask);
	if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(number, &action, NULL);
}

// A place in the table is written as one pointer, which a handler sees or does not.
void quit_removes(const char *path)
{
	size_t at = 0;

	ASSERT(path != NULL);
	while (at < FILES_MAX && files[at] != NULL)
		at++;
	// More than eight at a time: the ninth is left behind by a signal.
	if (at == FILES_MAX)
		return;
	files[at] = path;
	end_so(SIGINT);
	end_so(SIGTERM);
	end_so(SIGHUP);
	// A file that may not grow is an error of write() then, with a message, and no signal.
	signal(SIGXFSZ, SIG_IGN);
}

void quit_keeps(const char *path)
{
	for (size_t i = 0; i < FILES_MAX; i++)
		if (files[i] == path)
			files[i] = NULL;
}

static sigset_t signals;

// Blocked in all threads, to be waited for in one.
void quit_watch(void)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

// After it the signals are unblocked: a second one ends us at once.
void quit_wait(void)
{
	int number;

	ASSERT(sigismember(&signals, SIGINT) == 1); // quit_watch was called
	while (sigwait(&signals, &number) != 0)
		;
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}
