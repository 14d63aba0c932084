// The collector is a process of its own, which the program's end, a terminal that hangs up, or a
// launcher that is killed do not take along: the trace is finished in any case. It keeps nothing of
// ours: standard descriptors lead nowhere, 3 is the trace, 4 the socket to us, 5 what was allocated
// before, if there is any, and all from 6 on are closed. To put them there, each is first
// duplicated to a number from 6 on, since the trace may be 4 and the socket 3.
#include "launch/collector_process_linux.h"

#include "base/mem.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// The collector's own numbers: standard descriptors lead nowhere, then these two, then nothing.
enum {
	COLLECTOR_PROCESS_OUTPUT_FD = 3,
	COLLECTOR_PROCESS_REPORT_FD = 4,
	COLLECTOR_PROCESS_BEFORE_FD = 5, // if there is one
	COLLECTOR_PROCESS_ABOVE_FD = 6
};

// How long it may take to end.
enum {
	COLLECTOR_PROCESS_NAP_MS = 2,
	COLLECTOR_PROCESS_NAPS = 5000,
	COLLECTOR_PROCESS_KILLED_NAPS = 500,
};

// All copies first, above the numbers that are to be filled; then each into its place. False, with
// errno, and as they were: there is no room for the copies.
static bool collector_process_arrange(int output_fd, int report_fd, int before_fd)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int output = fcntl(output_fd, F_DUPFD_CLOEXEC, COLLECTOR_PROCESS_ABOVE_FD);
	int report = fcntl(report_fd, F_DUPFD_CLOEXEC, COLLECTOR_PROCESS_ABOVE_FD);
	int before = before_fd < 0 ? -1
				   : fcntl(before_fd, F_DUPFD_CLOEXEC, COLLECTOR_PROCESS_ABOVE_FD);

	ASSERT(output_fd >= 0 && report_fd >= 0);
	if (nowhere < 0 || output < 0 || report < 0 || (before_fd >= 0 && before < 0))
		return false;
	for (int fd = 0; fd < 3; fd++)
		dup2(nowhere, fd);
	dup3(output, COLLECTOR_PROCESS_OUTPUT_FD, O_CLOEXEC);
	dup3(report, COLLECTOR_PROCESS_REPORT_FD, O_CLOEXEC);
	close(COLLECTOR_PROCESS_BEFORE_FD);
	if (before >= 0)
		dup3(before, COLLECTOR_PROCESS_BEFORE_FD, O_CLOEXEC);
	close_range(COLLECTOR_PROCESS_ABOVE_FD, ~0u, 0);
	return true;
}

// No handler and no mask of anybody: who wants to end the collector may.
static void collector_process_reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < SIGRTMIN; number++)
		signal(number, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); // a file size limit is a full disk: a failing write
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

// As high as we may. For those who have the right that is as high as `most`.
static void collector_process_raise_limit(int number, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit((enum __rlimit_resource)number, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit((enum __rlimit_resource)number, &limit);
	if (limit.rlim_max >= most)
		return;
	limit.rlim_cur = limit.rlim_max = most;
	setrlimit((enum __rlimit_resource)number, &limit);
}

// Its shared memory is larger than many a limit on files, and it holds descriptors for every
// process.
void collector_process_raise_limits(void)
{
	collector_process_raise_limit(RLIMIT_FSIZE, RLIM_INFINITY);
	collector_process_raise_limit(RLIMIT_AS, RLIM_INFINITY);
	collector_process_raise_limit(RLIMIT_DATA, RLIM_INFINITY);
	collector_process_raise_limit(RLIMIT_CPU, RLIM_INFINITY);
	collector_process_raise_limit(RLIMIT_NOFILE, 65536);
}

static void collector_process_tell(int fd, enum collect_message_kind kind, pid_t pid,
				   const char *text)
{
	struct collect_message message;

	ASSERT(fd >= 0);
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.pid = (uint32_t)pid;
	memcpy(message.text, text, strnlen(text, sizeof(message.text) - 1));
	send(fd, &message, sizeof(message), MSG_NOSIGNAL);
}

// A group of its own, for the terminal's signals (Ctrl-C, Ctrl-Z, hanging up) are not for the
// collector. No session of its own: the kernel schedules sessions as groups (autogroup), and next
// to threads of another session that yield the collector may get no processor for seconds.
static void collector_process_leave_group(void)
{
	setpgid(0, 0);
}

static void collector_process_say_last(const char *text)
{
	collector_process_tell(COLLECTOR_PROCESS_REPORT_FD, COLLECT_WARNING, 0, text);
}

// Descriptors get fixed numbers in the child, so `own` has those in place of the launcher's. All
// else that the options point to is there as well, copied by fork.
_Noreturn static void collector_process_child(const struct collect_options *options, int report_fd)
{
	struct collect_options own = *options;
	struct err err = { 0 };

	ASSERT(report_fd >= 0);
	collector_process_leave_group();
	collector_process_reset_signals();
	collector_process_raise_limits();
	if (!collector_process_arrange(options->output_fd, report_fd, options->before_fd)) {
		err_errno(&err, errno, "cannot copy a descriptor");
		collector_process_tell(report_fd, COLLECT_STOPPED, 0, err.text);
		_exit(3);
	}
	mem_say_by(collector_process_say_last); // its stderr is /dev/null
	own.output_fd = COLLECTOR_PROCESS_OUTPUT_FD;
	own.report_fd = COLLECTOR_PROCESS_REPORT_FD;
	own.before_fd = options->before_fd < 0 ? -1 : COLLECTOR_PROCESS_BEFORE_FD;
	if (collect_run(&own, NULL, &err))
		_exit(0);
	collector_process_tell(COLLECTOR_PROCESS_REPORT_FD, COLLECT_STOPPED, 0, err.text);
	_exit(3);
}

bool collector_process_open(struct collector_process *collector_process,
			    const struct collect_options *options, struct err *err)
{
	int pair[2];

	ASSERT(collector_process->pid == 0 && options->output_fd >= 0);
	collector_process->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(err, errno, "cannot make a socket");
	// A plain fork: nothing of ours runs in another thread yet, and the child goes on in our
	// own code.
	collector_process->pid = fork();
	if (collector_process->pid == 0)
		collector_process_child(options, pair[1]);
	close(pair[1]);
	collector_process->fd = pair[0];
	if (collector_process->pid > 0)
		return true;
	collector_process->pid = 0;
	close(pair[0]);
	collector_process->fd = -1;
	return err_errno(err, errno, "cannot start the collector");
}

// One that says nothing in time is given up like one that has ended: its socket is closed.
bool collector_process_read(struct collector_process *collector_process,
			    struct collect_message *message, int patience_ms)
{
	struct pollfd ready = { .fd = collector_process->fd, .events = POLLIN };
	ssize_t got = 0;

	while (poll(&ready, 1, patience_ms) < 0 && errno == EINTR)
		;
	while (ready.revents) {
		got = recv(collector_process->fd, message, sizeof(*message), 0);
		if (got >= 0 || errno != EINTR)
			break;
	}
	if (got == (ssize_t)sizeof(*message)) {
		message->text[sizeof(message->text) - 1] = '\0';
		return true;
	}
	close(collector_process->fd);
	collector_process->fd = -1;
	return false;
}

void collector_process_send(const struct collector_process *collector_process,
			    enum collect_message_kind kind, pid_t pid, int status)
{
	struct collect_message message;

	if (collector_process->fd < 0)
		return;
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.pid = (uint32_t)pid;
	message.status = status;
	send(collector_process->fd, &message, sizeof(message), MSG_NOSIGNAL);
}

void collector_process_say(const struct collector_process *collector_process,
			   enum collect_message_kind kind, pid_t pid, const char *text)
{
	if (collector_process->fd >= 0)
		collector_process_tell(collector_process->fd, kind, pid, text);
}

void collector_process_reap(struct collector_process *collector_process)
{
	if (collector_process->pid > 0 &&
	    waitpid(collector_process->pid, NULL, WNOHANG) == collector_process->pid)
		collector_process->pid = 0;
}

// In /proc/PID/status: "State:	T (stopped)", and two lines that end in "ctxt_switches:	123".
bool collector_process_moved(struct collector_process *collector_process)
{
	static const char of_turns[] = "ctxt_switches:\t", of_state[] = "\nState:\t";
	unsigned long long turns = 0, before = collector_process->turns;
	char path[64], text[8192];
	const char *at, *state;
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)collector_process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		got = read(fd, text, sizeof(text) - 1);
	file_close(fd);
	text[got > 0 ? got : 0] = '\0';
	for (at = text; (at = strstr(at, of_turns)) != NULL; at += sizeof(of_turns) - 1)
		turns += strtoull(at + sizeof(of_turns) - 1, NULL, 10);
	state = strstr(text, of_state);
	if (!state || turns == 0)
		return true;
	state += sizeof(of_state) - 1;
	collector_process->turns = turns;
	collector_process->stopped = *state == 'T' || *state == 't';
	return turns != before || *state == 'R';
}

void collector_process_kill(struct collector_process *collector_process)
{
	collector_process->killed = true;
	if (collector_process->pid > 0)
		kill(collector_process->pid, SIGKILL);
}

// Its end, or a nap where the kernel cannot tell of it.
// A pidfd is readable when its process has ended. Older kernels have none: poll then waits for
// nothing, which is the nap.
static void collector_process_await(const struct collector_process *collector_process)
{
	struct pollfd end = { .fd = pidfd_open(collector_process->pid, 0), .events = POLLIN };

	ASSERT(collector_process->pid > 0);
	poll(&end, end.fd >= 0, COLLECTOR_PROCESS_NAP_MS);
	file_close(end.fd);
}

// Up to so many naps.
static void collector_process_await_for(struct collector_process *collector_process, int naps)
{
	for (int nap = 0; collector_process->pid > 0 && nap < naps; nap++) {
		collector_process_reap(collector_process);
		if (collector_process->pid > 0)
			collector_process_await(collector_process);
	}
}

void collector_process_close(struct collector_process *collector_process)
{
	file_close(collector_process->fd);
	collector_process->fd = -1;
	if (!collector_process->killed)
		collector_process_await_for(collector_process, COLLECTOR_PROCESS_NAPS);
	ASSERT(collector_process->fd < 0);
	collector_process_kill(collector_process);
	collector_process_await_for(collector_process, COLLECTOR_PROCESS_KILLED_NAPS);
	collector_process->pid = 0;
}
