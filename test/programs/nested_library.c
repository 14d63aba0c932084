// nested_library: an allocator that a signal handler may call at any time, for the program nested.
//
// Blocks are cut from one arena, the last one given back makes room again; nothing is locked.
// In the midst of realloc, `nested_inside` is called. Nothing here calls malloc by its name, which
// is the recorder's.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ARENA_BYTES = 64 << 20, UNIT = 16 };

extern void (*nested_inside)(void);
void (*nested_inside)(void);

static _Alignas(UNIT) char arena[ARENA_BYTES];
static _Atomic size_t used;

void *malloc(size_t size);
void free(void *block);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void *memalign(size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);

// In front of each block: its size.
static size_t *size_of(void *block)
{
	return (size_t *)((char *)block - UNIT);
}

static size_t bytes_of(size_t size)
{
	return UNIT + (size + UNIT - 1) / UNIT * UNIT;
}

static void *take(size_t size)
{
	size_t at;

	if (size > ARENA_BYTES / 2)
		return NULL;
	at = __atomic_fetch_add(&used, bytes_of(size), __ATOMIC_RELAXED);
	if (at + bytes_of(size) > ARENA_BYTES)
		return NULL;
	*(size_t *)(arena + at) = size;
	return arena + at + UNIT;
}

static void give(void *block)
{
	size_t start, end;

	if (!block)
		return;
	start = (size_t)((char *)size_of(block) - arena);
	end = start + bytes_of(*size_of(block));
	__atomic_compare_exchange_n(&used, &end, start, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	return take(size);
}

void free(void *block)
{
	give(block);
}

void *calloc(size_t count, size_t size)
{
	void *block = take(count * size);

	if (block)
		memset(block, 0, count * size);
	return block;
}

void *realloc(void *block, size_t size)
{
	void *moved;

	if (nested_inside)
		nested_inside();
	moved = take(size);
	if (block && moved) {
		memcpy(moved, block, *size_of(block) < size ? *size_of(block) : size);
		give(block);
	}
	return moved;
}

static void *take_aligned(size_t alignment, size_t size)
{
	char *block = take(size + alignment);

	if (alignment <= UNIT || !block)
		return block;
	block = (char *)(((uintptr_t)block + alignment - 1) / alignment * alignment);
	*size_of(block) = size;
	return block;
}

void *memalign(size_t alignment, size_t size)
{
	return take_aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return take_aligned(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	*out = take_aligned(alignment, size);
	return *out ? 0 : ENOMEM;
}
