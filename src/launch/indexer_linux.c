// The index of a recording is built in a process of its own, at idle priority, while the trace
// grows: it reads what is there, asks every 100 ms whether there is more, and is told ('w') when
// the trace is whole. From then on somebody waits, and we give it the priority of others: by itself
// it would have to be given a processor first. 's' ends it, and what is built so far is kept for
// the first question.
#include "launch/indexer_linux.h"

#include "base/mem.h"
#include "engine/window.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKET_FD = 3, POLL_MS = 100 };

// Words between the two.
enum { WORD_WHOLE = 'w', WORD_STOP = 's' };

// What the child knows.
struct following {
	bool whole, stop;
};

// A thread (0: this one) takes what is idle, or its share. False: it may not go back to that.
static bool set_idle(pid_t thread, bool idle)
{
	enum { WHO_PROCESS = 1, CLASS_IDLE = 3 << 13, CLASS_NONE = 0 };
	const struct sched_param param = { 0 };

	syscall(SYS_ioprio_set, WHO_PROCESS, thread, idle ? CLASS_IDLE : CLASS_NONE);
	return sched_setscheduler(thread, idle ? SCHED_IDLE : SCHED_OTHER, &param) == 0;
}

// Hear what there is to hear, for at most so long.
static void listen_for(struct following *following, int timeout_ms)
{
	struct pollfd ready = { .fd = SOCKET_FD, .events = POLLIN };
	char word;

	while (poll(&ready, 1, timeout_ms) > 0) {
		ssize_t got = recv(SOCKET_FD, &word, 1, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 1 && word == WORD_WHOLE) {
			following->whole = true;
			timeout_ms = 0;
			continue;
		}
		following->stop = true; // or who started us is gone
		return;
	}
}

// window_follow's question at the end of the file: go on waiting? Between two looks it sleeps on
// the socket, so a word wakes it at once.
static bool more(void *context)
{
	struct following *following = context;

	if (!following->whole && !following->stop)
		listen_for(following, POLL_MS);
	return !following->whole;
}

// Asked often while it works: only a look at the socket, without waiting.
static bool stop(void *context)
{
	struct following *following = context;

	if (!following->stop)
		listen_for(following, 0);
	return following->stop;
}

_Noreturn static void follow(const char *trace_path, int fd, bool whole)
{
	struct following following = { .whole = whole };
	const struct window_options options = { .progress = PROGRESS_NONE,
						.stop = stop,
						.context = &following };
	struct err err = { 0 };
	sigset_t none;

	ASSERT(fd != SOCKET_FD); // or it would be closed below
	dup3(fd, SOCKET_FD, O_CLOEXEC);
	close_range(SOCKET_FD + 1, ~0u, 0);
	// The terminal's signals are for the program; another process may end us.
	for (int number = 1; number < SIGRTMIN; number++)
		signal(number, number == SIGTERM ? SIG_DFL : SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "tidemark-index");
	if (!whole)
		set_idle(0, true);
	if (window_follow(trace_path, &options, more, &err))
		_exit(INDEXER_READY);
	send(SOCKET_FD, err.text, strlen(err.text), MSG_NOSIGNAL);
	_exit(err.kind == ERR_STOPPED ? INDEXER_STOPPED : INDEXER_FAILED);
}

bool indexer_open(struct indexer *indexer, const char *trace_path, bool whole, struct err *err)
{
	int pair[2];

	ASSERT(indexer->pid == 0);
	*indexer = (struct indexer){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(err, errno, "cannot make a socket");
	indexer->pid = fork();
	if (indexer->pid == 0) {
		// One that is 3 already would be closed by itself.
		int fd = fcntl(pair[1], F_DUPFD_CLOEXEC, SOCKET_FD + 1);

		follow(trace_path, fd, whole);
	}
	close(pair[1]);
	if (indexer->pid > 0) {
		indexer->fd = pair[0];
		return true;
	}
	indexer->pid = 0;
	close(pair[0]);
	return err_errno(err, errno, "cannot start the indexer");
}

static void say(const struct indexer *indexer, char word)
{
	ASSERT(indexer->pid > 0 || indexer->fd < 0);
	if (indexer->fd >= 0)
		send(indexer->fd, &word, 1, MSG_NOSIGNAL);
}

// Its threads, the first of them first: what that starts from then on is as it is.
static bool hurry(pid_t pid)
{
	char path[40];
	struct dirent *entry;
	bool ok = set_idle(pid, false);
	DIR *threads;

	ASSERT(pid > 0);
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	threads = ok ? opendir(path) : NULL;
	while (threads && (entry = readdir(threads)))
		if (entry->d_name[0] != '.')
			set_idle((pid_t)strtol(entry->d_name, NULL, 10), false);
	if (threads)
		closedir(threads);
	return ok;
}

bool indexer_whole(const struct indexer *indexer)
{
	bool ok = hurry(indexer->pid);

	// Without RLIMIT_NICE the way back from idle priority is closed to all but root.
	say(indexer, ok ? WORD_WHOLE : WORD_STOP);
	return ok;
}

void indexer_stop(const struct indexer *indexer)
{
	say(indexer, WORD_STOP);
}

enum indexer_end indexer_close(struct indexer *indexer, uint64_t *cpu_ns, struct err *err)
{
	struct rusage usage = { 0 };
	char text[sizeof err->text] = "";
	ssize_t got;
	int status = 0;

	ASSERT(indexer->pid > 0 && indexer->fd >= 0);
	// An answer of 0 bytes is the child's end: it had nothing to say, and its exit code has.
	do
		got = recv(indexer->fd, text, sizeof text - 1, 0);
	while (got < 0 && errno == EINTR);
	close(indexer->fd);
	while (wait4(indexer->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	*indexer = (struct indexer){ .fd = -1 };
	*cpu_ns += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
		   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= INDEXER_STOPPED)
		return (enum indexer_end)WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		err_set(err, ERR_IO, "the process that builds it was ended by signal %s%s",
			sigabbrev_np(WTERMSIG(status)),
			WTERMSIG(status) == SIGKILL ? " (no memory, if you did not)" : "");
	else
		err_set(err, ERR_IO, "%s", got > 0 ? text : "the process that builds it died");
	return INDEXER_FAILED;
}
