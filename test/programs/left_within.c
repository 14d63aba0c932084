// A program with an allocator of its own, a call of which is under way when a recording of it ends.
//
// It waits until its code is changed, that is until it is recorded, and gets a block of 7777 bytes.
// A thread asks for another one, by the function that it is told, and waits within the allocator.
// "inside" is said then. As soon as the code is as it was, the first block is freed, which no hook
// sees, and the thread is given its address; "over" is said. It exits with 7 when its standard
// input ends. The main thread has words on its stack that lead to the recorder, so that it is not
// gone at once. It must be true that the address was given out once, and that one block of 7777
// bytes lives at the end. Realloc is given one of 7778 bytes.
#include "room.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AWAITED = 7777, OTHER = 7778, CODE_BYTES = 5, NAP_US = 200 };

static void *_Atomic spare;
static _Atomic int holds, within;

static void *get_awaited(size_t size)
{
	void *block = NULL;

	if (size != AWAITED || !holds)
		return room_get(size);
	within = 1;
	while (!(block = atomic_exchange(&spare, NULL)))
		usleep(NAP_US);
	return block;
}

// Each has more than one call, so that its first bytes are no jump to another one.
void *malloc(size_t size)
{
	void *block = get_awaited(size);

	if (!block)
		errno = ENOMEM;
	return block;
}

void free(void *block)
{
	if (block && *room_size(block) == AWAITED)
		spare = block;
}

void *calloc(size_t count, size_t size)
{
	void *block = get_awaited(count * size);

	return memset(block, 0, count * size);
}

void *realloc(void *block, size_t size)
{
	void *other = get_awaited(size);

	if (block)
		memcpy(other, block, *room_size(block) < size ? *room_size(block) : size);
	return other;
}

static void *ask(void *argument)
{
	const char *way = argument;

	if (strcmp(way, "malloc") == 0)
		return malloc(AWAITED);
	if (strcmp(way, "calloc") == 0)
		return calloc(1, AWAITED);
	return realloc(malloc(OTHER), AWAITED);
}

int main(int argc, char **argv)
{
	const volatile unsigned char *code = (const volatile unsigned char *)(uintptr_t)malloc;
	unsigned char before[CODE_BYTES];
	volatile uintptr_t leads[16];
	pthread_t thread;
	int32_t distance;
	void *first, *second;

	for (int i = 0; i < CODE_BYTES; i++)
		before[i] = code[i];
	printf("ready\n");
	fflush(stdout);
	while (code[0] == before[0])
		usleep(NAP_US);
	first = malloc(AWAITED);
	holds = 1;
	pthread_create(&thread, NULL, ask, argc > 1 ? argv[1] : "malloc");
	while (!within)
		usleep(NAP_US);
	memcpy(&distance, (const void *)(uintptr_t)(code + 1), sizeof(distance));
	for (int i = 0; i < 16; i++)
		leads[i] = (uintptr_t)code + CODE_BYTES + (uintptr_t)(intptr_t)distance;
	printf("inside\n");
	fflush(stdout);
	while (code[0] != before[0])
		usleep(NAP_US);
	free(first);
	pthread_join(thread, &second);
	printf(second == first && leads[0] ? "over\n" : "another block\n");
	fflush(stdout);
	getchar();
	return 7;
}
