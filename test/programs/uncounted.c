// Allocates, forbids itself the processor's counter, and goes on allocating.
//
//     uncounted WAY
//
// WAY: prctl, or syscall for the same by syscall(). Before, 100 blocks of 7801 bytes. Then 60,000
// pairs of 7802 bytes each in the main thread, in a thread that is started then, and in a forked
// child; between the first 30,000 and the others lie 100 ms.
#include "guest.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { BEFORE = 100, PAIRS = 60000, PAUSE_NS = 100000000 };

static void *volatile block;

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < PAIRS; i++) {
		if (i == PAIRS / 2)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		block = malloc(7802);
		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;
	pid_t child;

	guest_check(argc == 2, "uncounted WAY");
	for (int i = 0; i < BEFORE; i++)
		block = malloc(7801);
	if (strcmp(argv[1], "syscall") == 0)
		guest_check(syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0, "prctl");
	else
		guest_check(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0, "prctl");
	work(NULL);
	guest_check(pthread_create(&thread, NULL, work, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		work(NULL);
		_exit(7);
	}
	guest_check(waitpid(child, &status, 0) == child, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
