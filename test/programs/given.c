// given: prints what it was given: descriptors, signal mask and dispositions, umask, limits,
// priority, working directory, arguments and environment but for the recorder's two variables.
// The same with and without a recorder.
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static void say_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);
		struct stat status;

		if (flags >= 0 && fstat(fd, &status) == 0)
			guest_say("fd %d flags %d type %o status %o\n", fd, flags,
				  status.st_mode & S_IFMT, fcntl(fd, F_GETFL));
	}
}

static void say_signals(void)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int number = 1; number < 65; number++) {
		struct sigaction action;

		if (sigaction(number, NULL, &action) == 0)
			guest_say("signal %d %s blocked %d\n", number,
				  action.sa_handler == SIG_IGN   ? "ignored"
				  : action.sa_handler == SIG_DFL ? "default"
								 : "handled",
				  sigismember(&mask, number));
	}
}

int main(int argc, char **argv)
{
	char folder[4096];
	mode_t mask = umask(0);

	umask(mask);
	say_descriptors();
	say_signals();
	guest_say("umask %o nice %d cwd %s\n", mask, getpriority(PRIO_PROCESS, 0),
		  getcwd(folder, sizeof(folder)));
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (getrlimit((enum __rlimit_resource)i, &limit) == 0)
			guest_say("limit %d %llx %llx\n", i, (unsigned long long)limit.rlim_cur,
				  (unsigned long long)limit.rlim_max);
	}
	for (int i = 0; i < argc; i++)
		guest_say("argument %s\n", argv[i]);
	for (char **at = environ; *at; at++)
		if (strncmp(*at, "LD_PRELOAD=", 11) != 0 &&
		    strncmp(*at, "TIDEMARK_SESSION=", 17) != 0)
			guest_say("variable %.400s\n", *at);
	guest_say("session %s group %s\n", getsid(0) == getsid(getppid()) ? "same" : "other",
		  getpgrp() == getpgid(getppid()) ? "same" : "other");
	return 0;
}
