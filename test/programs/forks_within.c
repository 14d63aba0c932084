// A program with an allocator of its own that forks in it, in a thread, until its standard input
// ends: of 7777 bytes the child comes out of malloc as well, and exits with 3 in its caller. The
// thread spins before it forks, so that it is mostly met there. How many children ended otherwise
// is said at the end, and it exits with 7. There must be none, whatever is done to the program: a
// child is nobody's.
#include "room.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKED = 7777, TURNS = 20000 };

static _Alignas(ROOM_HEAD_BYTES) char forked[2 * ROOM_HEAD_BYTES + FORKED];
static _Atomic int over;
static int wrong;
static _Atomic pid_t child;

void *malloc(size_t size)
{
	int status = 0;

	if (size != FORKED)
		return room_get(size);
	for (int i = 0; i < TURNS; i++)
		__builtin_ia32_pause();
	child = fork();
	if (child > 0 &&
	    (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3))
		wrong++;
	return forked + ROOM_HEAD_BYTES;
}

void free(void *block)
{
	(void)block;
}

void *calloc(size_t count, size_t size)
{
	return memset(room_get(count * size), 0, count * size);
}

void *realloc(void *block, size_t size)
{
	void *other = room_get(size);
	size_t before = block ? *room_size(block) : 0;

	if (block)
		memcpy(other, block, before < size ? before : size);
	return other;
}

static void *go_round(void *argument)
{
	while (!over) {
		free(malloc(FORKED));
		if (child == 0)
			_exit(3);
	}
	return argument;
}

int main(void)
{
	pthread_t thread;
	char byte;

	pthread_create(&thread, NULL, go_round, NULL);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	over = 1;
	pthread_join(thread, NULL);
	printf("%d wrong\n", wrong);
	fflush(stdout);
	return 7;
}
