// What the index says of a recording is what a list of all lifetimes says: for test/real/window.py.
//
//     TRACE=FILE [WINDOWS=N] [SEED=N] window_same
//
// Asks every question of engine/window.h about so many random windows, with random groupings and
// filters, of either layer; by an index as it is, and by one with blocks so small that every path
// is taken.
#include "test/unit/window_same.h"

#include <stdlib.h>

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static struct window *open_window(struct reader *reader, struct window_options options)
{
	struct err err = { 0 };
	struct window *window;

	options.progress = PROGRESS_NONE;
	window = window_open(getenv("TRACE"), reader, &options, &err);
	CHECK_STR("", err.text);
	return window;
}

static void check_recording(const char *index)
{
	const char *path = getenv("TRACE");
	struct err err = { 0 };
	struct pair pair = { .random = { number("SEED", 1) }, .long_enough = 8192 };

	if (!path)
		SKIP("no TRACE given");
	pair.reader = reader_open(path, &err);
	pair.plain_reader = reader_open(path, &err);
	CHECK_STR("", err.text);
	setenv("TIDEMARK_INDEX", index, 1);
	pair.index = open_window(pair.reader,
				 (struct window_options){ .index_path = test_temp_path("index") });
	pair.plain = open_window(pair.plain_reader,
				 (struct window_options){ .plain = true,
							  .memory_bytes = UINT64_C(64) << 30 });
	check_all(&pair, (int)number("WINDOWS", 40));
	close_pair(&pair);
}

TEST(the_index_of_a_recording_says_what_a_list_of_all_lifetimes_says)
{
	check_recording("auto");
}

TEST(it_says_the_same_when_its_blocks_are_tiny)
{
	check_recording("tiny");
}
