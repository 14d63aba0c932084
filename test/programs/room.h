// room: what an allocator of a program's own gives out, of one static array: no block comes twice.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { ROOM_HEAD_BYTES = 64, ROOM_BYTES = 1 << 22 };

static _Alignas(ROOM_HEAD_BYTES) char room[ROOM_BYTES];
static _Atomic size_t room_taken;

static inline void *room_get(size_t size)
{
	size_t bytes = (size + 2 * ROOM_HEAD_BYTES - 1) / ROOM_HEAD_BYTES * ROOM_HEAD_BYTES;
	char *block = room + atomic_fetch_add(&room_taken, bytes);

	if (block + bytes > room + ROOM_BYTES)
		_exit(98);
	*(size_t *)(void *)block = size;
	return block + ROOM_HEAD_BYTES;
}

// What was asked for.
static inline size_t *room_size(void *block)
{
	return (size_t *)(void *)((char *)block - ROOM_HEAD_BYTES);
}
