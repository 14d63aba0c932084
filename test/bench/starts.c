// starts: what is paid once for each process, each thread, and each exception thrown.
//
//     starts forks COUNT           children one after the other, each with some blocks
//     starts children COUNT        children that all live at one time
//     starts threads COUNT         threads that all live at one time
#include "descend.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS_MAX = 4096, STARTS_PAIRS = 200 };

static int starts_gate[2]; // closed at its end when all are there

static void starts_pairs(void)
{
	for (int i = 0; i < STARTS_PAIRS; i++) {
		void *ptr = malloc(16 + (size_t)(i & 31) * 16);

		descend_use(ptr);
		free(ptr);
	}
}

static void starts_wait(void)
{
	char byte;

	while (read(starts_gate[0], &byte, 1) > 0)
		;
}

static int starts_forks(long count, int all_live)
{
	for (long i = 0; i < count; i++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (child == 0) {
			close(starts_gate[1]);
			starts_pairs();
			if (all_live)
				starts_wait();
			_exit(0);
		}
		if (!all_live)
			waitpid(child, NULL, 0);
	}
	close(starts_gate[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

static void *starts_run(void *context)
{
	(void)context;
	starts_pairs();
	starts_wait();
	return NULL;
}

static int starts_threads(long count)
{
	static pthread_t threads[STARTS_MAX];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], &attr, starts_run, NULL) != 0)
			return 1;
	close(starts_gate[1]);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long count = descend_number(argc, argv, 2, 1000);

	if (count < 1 || count > STARTS_MAX || pipe(starts_gate) != 0)
		return 2;
	if (strcmp(what, "threads") == 0)
		return starts_threads(count);
	return starts_forks(count, strcmp(what, "children") == 0);
}
