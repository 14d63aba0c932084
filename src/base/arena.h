// arena: many small things that never move and go together.
//
// `struct arena arena = { 0 };` is an empty one. One thread.
#pragma once

#include <stddef.h>

struct arena {
	struct arena_chunk *chunks; // private: the latest first
	size_t used, size;          // private: bytes of the latest
};

// Zeroed memory, aligned for anything.
void *arena_take(struct arena *arena, size_t size_bytes);

// A copy of the text, which is not aligned.
// Pieces stay where they are until arena_fini, which ends all of them: none is freed by itself.
char *arena_text(struct arena *arena, const char *text);

void arena_fini(struct arena *arena);
