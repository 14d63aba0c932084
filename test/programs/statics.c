// To be linked statically, in every way there is. Everything is counted by the program itself: it
// prints, for each size that it asks for, how often it does; each block is freed again. With "tls"
// as its argument it says what only a program can that nobody has been in; with "kill" it kills
// itself in the midst of it; with "-" and programs it starts the first of these with the rest; with
// "wait" it says "ready", and begins when its standard input has a line.
//
//     7501, 7502, 7503   malloc, realloc of that, and realloc of that, by four threads, 1000 each
//     7504               calloc, by main, 10
//     7552 (64), 7488    posix_memalign and aligned_alloc, by main, 10 each
//     7505               by a forked child, 10; and by main again 5, after setjmp was jumped to
//     7506               by a signal handler, 10
//     7507               by a thread that ends while others run, over and over, 50
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static __thread int initialised = 77;
static __thread char zeros[100];
static __thread void *pointer = &environ; // which a position-independent program relocates
static jmp_buf place;

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check_variables(void)
{
	check(initialised == 77 && pointer == &environ, "thread-local variables");
	for (size_t i = 0; i < sizeof(zeros); i++)
		check(zeros[i] == 0, "thread-local zeros");
	initialised = 78;
	memset(zeros, 1, sizeof(zeros));
}

static void take(size_t size)
{
	char *block = malloc(size);

	memset(block, 1, size);
	free(block);
}

static void *work(void *unused)
{
	check_variables();
	for (int i = 0; i < 1000; i++) {
		void *block = malloc(7501);

		block = realloc(block, 7502);
		free(realloc(block, 7503));
	}
	return unused;
}

static void *work_shortly(void *unused)
{
	check_variables();
	take(7507);
	return unused;
}

static void handle(int number)
{
	(void)number;
	take(7506);
}

static void threads(void)
{
	pthread_t all[4], one;

	for (int i = 0; i < 4; i++)
		check(pthread_create(&all[i], NULL, work, NULL) == 0, "pthread_create");
	for (int i = 0; i < 50; i++) {
		check(pthread_create(&one, NULL, work_shortly, NULL) == 0, "pthread_create");
		pthread_join(one, NULL);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}

static void others(void)
{
	void *block;

	for (int i = 0; i < 10; i++) {
		free(calloc(1, 7504));
		check(posix_memalign(&block, 64, 7552) == 0, "posix_memalign");
		free(block);
		free(aligned_alloc(64, 7488));
		raise(SIGUSR1);
	}
}

static void fork_one(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < 10; i++)
			take(7505);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, "the child");
}

static void jump(void)
{
	volatile int times = 0;

	setjmp(place);
	take(7505);
	if (++times < 5)
		longjmp(place, 1);
}

static int say_traces(void)
{
	char line[256];
	FILE *file = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "TracerPid", 9) == 0 ||
		    (strncmp(line, "Sig", 3) == 0 && line[3] != 'Q'))
			fputs(line, stdout);
	fclose(file);
	printf("headers %lu\n", getauxval(AT_PHNUM));
	return 0;
}

static void start(char **programs)
{
	char *words[64] = { programs[0], "-" };
	int status;
	pid_t pid;

	for (int i = 1; programs[i]; i++)
		words[i + 1] = programs[i];
	if (!programs[1])
		words[1] = NULL;
	execve("./there_is_no_such_program", words, environ);
	check(posix_spawn(&pid, words[0], NULL, NULL, words, environ) == 0, "posix_spawn");
	check(waitpid(pid, &status, 0) == pid && status == 0, "a program of ours");
}

static void wait_for_line(void)
{
	char byte;

	check(write(1, "ready\n", 6) == 6 && read(0, &byte, 1) == 1, "nobody says go");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "tls") == 0)
		return say_traces();
	if (argc > 1 && strcmp(argv[1], "wait") == 0)
		wait_for_line();
	check_variables();
	signal(SIGUSR1, handle);
	threads();
	if (argc > 1 && strcmp(argv[1], "kill") == 0)
		kill(getpid(), SIGKILL);
	others();
	fork_one();
	jump();
	if (argc > 2)
		start(argv + 2);
	printf("7501 4000\n7502 4000\n7503 4000\n7504 10\n7552 10\n7488 10\n7505 15\n7506 10\n"
	       "7507 50\n");
	return 0;
}
