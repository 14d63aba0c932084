#include "launch/backstage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// The collector's own numbers: standard descriptors lead nowhere, then these two, then nothing.
enum { BACKSTAGE_OUTPUT_FD = 3, BACKSTAGE_REPORT_FD = 4, BACKSTAGE_ABOVE_FD = 5 };

static void backstage_arrange(int output_fd, int report_fd)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int output = fcntl(output_fd, F_DUPFD_CLOEXEC, 64);
	int report = fcntl(report_fd, F_DUPFD_CLOEXEC, 64);

	for (int fd = 0; fd < 3 && nowhere >= 0; fd++)
		dup2(nowhere, fd);
	dup3(output, BACKSTAGE_OUTPUT_FD, O_CLOEXEC);
	dup3(report, BACKSTAGE_REPORT_FD, O_CLOEXEC);
	close_range(BACKSTAGE_ABOVE_FD, ~0u, 0);
}

// No handler and no mask of anybody: who wants to end the collector may.
static void backstage_reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < SIGRTMIN; number++)
		signal(number, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); // a file size limit is a full disk: a failing write
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void backstage_child(const struct collect_options *options, int report_fd)
{
	struct collect_options own = *options;
	struct err err = { 0 };

	setsid();
	backstage_reset_signals();
	backstage_arrange(options->output_fd, report_fd);
	own.output_fd = BACKSTAGE_OUTPUT_FD;
	own.report_fd = BACKSTAGE_REPORT_FD;
	_exit(collect_run(&own, NULL, &err) ? 0 : 3);
}

bool backstage_open(struct backstage *backstage, const struct collect_options *options,
		    struct err *err)
{
	int pair[2];

	backstage->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(err, errno, "cannot make a socket");
	backstage->pid = fork();
	if (backstage->pid == 0)
		backstage_child(options, pair[1]);
	close(pair[1]);
	backstage->fd = pair[0];
	if (backstage->pid > 0)
		return true;
	backstage->pid = 0;
	close(pair[0]);
	backstage->fd = -1;
	return err_errno(err, errno, "cannot start the collector");
}

bool backstage_read(struct backstage *backstage, struct collect_message *message)
{
	ssize_t got;

	do {
		got = recv(backstage->fd, message, sizeof(*message), 0);
	} while (got < 0 && errno == EINTR);
	if (got == (ssize_t)sizeof(*message)) {
		message->text[sizeof(message->text) - 1] = '\0';
		return true;
	}
	close(backstage->fd);
	backstage->fd = -1;
	return false;
}

void backstage_send(const struct backstage *backstage, enum collect_message_kind kind, pid_t pid,
		    int status)
{
	struct collect_message message;

	if (backstage->fd < 0)
		return;
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.pid = (uint32_t)pid;
	message.status = status;
	send(backstage->fd, &message, sizeof(message), MSG_NOSIGNAL);
}

int backstage_close(struct backstage *backstage)
{
	int status = 0;

	if (backstage->fd >= 0)
		close(backstage->fd);
	backstage->fd = -1;
	if (backstage->pid > 0)
		while (waitpid(backstage->pid, &status, 0) < 0 && errno == EINTR)
			;
	backstage->pid = 0;
	return status;
}
