// Chunks of 64 KiB, from which pieces are taken one after the other. For example, 10 bytes, then 24
// at a multiple of 16: they begin at 0 and at 16, and 40 are used. What does not fit begins a new
// chunk, and what is left of the old one is wasted; what is larger than a chunk gets one of its own
// size.
#include "base/arena.h"

#include "base/mem.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

// The bytes are aligned for anything, so an alignment within a chunk is one of the address.
struct arena_chunk {
	struct arena_chunk *next;
	alignas(max_align_t) char bytes[];
};

enum { CHUNK_BYTES = 1 << 16 };

// `alignment` is a power of two. A chunk comes from mem_alloc, so that pieces are zero without
// more.
static void *take(struct arena *arena, size_t size_bytes, size_t alignment)
{
	size_t at = (arena->used + alignment - 1) & ~(alignment - 1);

	ASSERT(alignment > 0 && (alignment & (alignment - 1)) == 0);
	if (!arena->chunks || at > arena->size || arena->size - at < size_bytes) {
		size_t size = size_bytes > CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
		struct arena_chunk *chunk;

		ASSERT(size_bytes <= SIZE_MAX - sizeof *chunk);
		chunk = mem_alloc(1, sizeof *chunk + size);
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->size = size;
		at = 0;
	}
	arena->used = at + size_bytes;
	ASSERT(arena->used <= arena->size);
	return arena->chunks->bytes + at;
}

void *arena_take(struct arena *arena, size_t size_bytes)
{
	return take(arena, size_bytes, alignof(max_align_t));
}

char *arena_text(struct arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(take(arena, size, 1), text, size);
}

void arena_fini(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;

		mem_free(arena->chunks);
		arena->chunks = next;
	}
	*arena = (struct arena){ 0 };
}
