// waited: children that come one after the other, each waited for before the next begins.
//
//     waited HOW COUNT
//
// HOW is the function that waits: waitpid, wait, wait3, wait4, waitid; or `killed`, whose children
// end by a signal, and are waited for by waitpid; or `ignored`, whose children nothing waits for:
// the end of a pipe says that they are gone. Each child has 40 blocks of 100,000 bytes at its end;
// the parent has as much between two children.
#include "guest.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 40, BLOCK_BYTES = 100000 };

static void *blocks[BLOCKS];

static void take(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(BLOCK_BYTES);
}

static void give_back(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

static int wait_for(const char *how, pid_t child)
{
	struct rusage usage;
	siginfo_t information;

	if (strcmp(how, "wait") == 0)
		return wait(NULL);
	if (strcmp(how, "wait3") == 0)
		return wait3(NULL, 0, &usage);
	if (strcmp(how, "wait4") == 0)
		return wait4(child, NULL, 0, &usage);
	if (strcmp(how, "waitid") == 0)
		return waitid(P_PID, (id_t)child, &information, WEXITED) == 0 ? child : -1;
	return waitpid(child, NULL, 0);
}

// By a pipe that the child has the other end of.
static int wait_for_end(const int ends[2], pid_t child)
{
	char byte;

	close(ends[1]);
	if (read(ends[0], &byte, 1) != 0)
		return -1;
	close(ends[0]);
	return child;
}

int main(int argc, char **argv)
{
	bool ignored;

	guest_check(argc == 3, "waited HOW COUNT");
	ignored = strcmp(argv[1], "ignored") == 0;
	if (ignored)
		signal(SIGCHLD, SIG_IGN);
	for (int i = atoi(argv[2]); i > 0; i--) {
		int ends[2];
		pid_t child;

		guest_check(pipe(ends) == 0, "pipe");
		child = fork();

		guest_check(child >= 0, "fork");
		if (child == 0) {
			take();
			if (strcmp(argv[1], "killed") == 0)
				raise(SIGKILL);
			_exit(3);
		}
		if (!ignored)
			close(ends[0]), close(ends[1]);
		guest_check((ignored ? wait_for_end(ends, child) : wait_for(argv[1], child)) ==
				    child,
			    argv[1]);
		take();
		give_back();
	}
	return 0;
}
