// Blocks whose numbers are known, in three phases. Between them it says which comes and waits for a
// line, so that a test can have them recorded in one way or the other.
//
//     one    KEPT blocks in `first`
//     two    half of those are freed, MOVED are made larger in `moved`; each thread makes DRAWN
//            blocks in `drawn`, of which the next thread frees half, and a forked child as many in
//            `child`
//     three  the drawn ones left are made larger in `grown`, then freed; KEPT blocks in `last`,
//            which stay
//
// With "loop" it makes and frees blocks of 64 bytes, in a thread, until a line comes; then it waits
// for another one.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 2000, MOVED = 200, DRAWN = 20000, THREADS = 3 };

static void *kept[KEPT], *late[KEPT];
static void *blocks[THREADS][DRAWN];
static pthread_barrier_t all;
static _Atomic int over;

#define SITE __attribute__((noinline))

SITE static void *first(size_t size)
{
	return malloc(size);
}

SITE static void *moved(void *block, size_t size)
{
	return realloc(block, size);
}

SITE static void *drawn(size_t size)
{
	return malloc(size);
}

SITE static void *child(size_t size)
{
	return calloc(1, size);
}

SITE static void *grown(void *block, size_t size)
{
	return realloc(block, size);
}

SITE static void *last(size_t size)
{
	return malloc(size);
}

// Standard input and output have no buffers of malloc's.
static void wait_for_line(const char *phase)
{
	char byte = 0;

	dprintf(1, "%s\n", phase);
	while (byte != '\n')
		if (read(0, &byte, 1) != 1)
			_exit(3);
}

static void *draw(void *argument)
{
	void **mine = argument;
	void **next = blocks[((void *(*)[DRAWN])argument - blocks + 1) % THREADS];

	for (int i = 0; i < DRAWN; i++)
		mine[i] = drawn(40 + 8 * (size_t)(i % 32));
	pthread_barrier_wait(&all);
	for (int i = 0; i < DRAWN / 2; i++)
		free(next[i]);
	return NULL;
}

static void fork_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = MOVED; i < KEPT / 2; i++)
			free(kept[i]);
		for (int i = 0; i < DRAWN; i++)
			free(child(100));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *loop(void *unused)
{
	while (!over)
		free(drawn(64));
	return unused;
}

static int run_loop(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, loop, NULL);
	wait_for_line("busy");
	over = 1;
	pthread_join(thread, NULL);
	wait_for_line("quiet");
	for (int i = 0; i < KEPT; i++)
		late[i] = last(100);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc > 1 && strcmp(argv[1], "loop") == 0)
		return run_loop();
	pthread_barrier_init(&all, NULL, THREADS);
	for (int i = 0; i < KEPT; i++)
		kept[i] = first(200);
	wait_for_line("two");
	for (int i = 0; i < MOVED; i++)
		kept[i] = moved(kept[i], 300);
	fork_child();
	for (int i = KEPT / 2; i < KEPT; i++)
		free(kept[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, draw, blocks[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	wait_for_line("three");
	for (int i = 0; i < THREADS; i++)
		for (int j = DRAWN / 2; j < DRAWN; j++)
			free(grown(blocks[i][j], 1000));
	for (int i = 0; i < KEPT; i++)
		late[i] = last(100);
	return 0;
}
