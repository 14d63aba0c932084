// A program with an allocator of its own that forks in it, in a thread, until its standard input
// ends: of 7777 bytes the child comes out of malloc as well, and exits with 3 in its caller. The
// thread spins before it forks, so that it is mostly met there. How many children ended otherwise
// is said at the end, and it exits with 7. There must be none, whatever is done to the program: a
// child is nobody's.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKED = 7777, HEAD_BYTES = 64, ROOM_BYTES = 1 << 22, TURNS = 20000 };

static _Alignas(HEAD_BYTES) char room[ROOM_BYTES];
static _Alignas(HEAD_BYTES) char forked[2 * HEAD_BYTES + FORKED];
static _Atomic size_t taken;
static _Atomic int over;
static int wrong;
static _Atomic pid_t child;

static void *get(size_t size)
{
	size_t bytes = (size + 2 * HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES;
	char *block = room + atomic_fetch_add(&taken, bytes);

	if (block + bytes > room + ROOM_BYTES)
		_exit(98);
	*(size_t *)(void *)block = size;
	return block + HEAD_BYTES;
}

void *malloc(size_t size)
{
	int status = 0;

	if (size != FORKED)
		return get(size);
	for (int i = 0; i < TURNS; i++)
		__builtin_ia32_pause();
	child = fork();
	if (child > 0 &&
	    (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3))
		wrong++;
	return forked + HEAD_BYTES;
}

void free(void *block)
{
	(void)block;
}

void *calloc(size_t count, size_t size)
{
	return memset(get(count * size), 0, count * size);
}

void *realloc(void *block, size_t size)
{
	void *other = get(size);
	size_t before = block ? *(size_t *)(void *)((char *)block - HEAD_BYTES) : 0;

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
