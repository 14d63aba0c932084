// base/arena.h: what was taken stays where it is, zeroed and aligned, whatever its size.
#include "base/arena.h"
#include "test/test.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

TEST(arena_never_moves_what_it_gave)
{
	enum { COUNT = 3000 };
	struct arena arena = { 0 };
	unsigned char *taken[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		size_t size = i % 1000 == 999 ? 200000 : i % 97;

		taken[i] = arena_take(&arena, size);
		CHECK_EQ(0, (uintptr_t)taken[i] % alignof(max_align_t));
		for (size_t at = 0; at < size; at++)
			CHECK_EQ(0, taken[i][at]);
		memset(taken[i], (int)(i % 251 + 1), size);
	}
	for (size_t i = 0; i < COUNT; i++)
		for (size_t at = 0; at < (i % 1000 == 999 ? 200000 : i % 97); at++)
			CHECK_EQ(i % 251 + 1, taken[i][at]);
	arena_fini(&arena);
}

TEST(arena_copies_texts)
{
	struct arena arena = { 0 };
	char text[] = "one";
	const char *copy = arena_text(&arena, text);

	text[0] = 'x';
	CHECK_STR("one", copy);
	CHECK_STR("", arena_text(&arena, ""));
	arena_fini(&arena);
	arena_fini(&arena);
}
