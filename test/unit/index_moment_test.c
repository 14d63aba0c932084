// What an index says of a moment is what reading the trace up to there says.
#include "base/mem.h"
#include "engine/index/index.h"
#include "test/unit/moment_same.h"
#include "test/unit/window_random.h"

#include <unistd.h>

enum { EVENTS = 3000, MOMENTS = 40 };

static const struct window_random kinds[] = {
	{ .events = EVENTS, .addresses = 60, .free_share = 48, .idle_share = 30, .calls = true },
	{ .events = EVENTS, .addresses = 900, .free_share = 35, .idle_share = 80, .calls = true },
	{ .events = EVENTS, .addresses = 2000, .free_share = 50, .idle_share = 3, .clean = true },
	{ .events = EVENTS,
	  .addresses = 300,
	  .free_share = 45,
	  .idle_share = 40,
	  .one_process = true,
	  .calls = true },
	{ .events = EVENTS, .addresses = 900, .free_share = 40, .idle_share = 40, .huge = true },
	{ .events = EVENTS,
	  .addresses = 500,
	  .free_share = 45,
	  .idle_share = 20,
	  .one_process = true,
	  .one_heap = true,
	  .calls = true },
};

static const char *trace_path(void)
{
	return test_temp_path("random.tide");
}

// With an index, and to be read.
static struct moment_sides open_sides(uint64_t seed, const struct window_random *like,
				      const struct window_options *more, uint64_t cut)
{
	struct window_options options = *more;
	struct err err = { 0 };
	struct reader *reader = window_random_open(seed, like, cut);
	struct reader *index_reader = reader_open(trace_path(), &err);
	struct window *window;

	options.index_path = test_temp_path("random.tide-index");
	options.progress = PROGRESS_NONE;
	if (!options.shape)
		options.shape = &index_shape_tiny;
	window = window_open(trace_path(), index_reader, &options, &err);
	CHECK_STR("", err.text);
	return moment_sides_of(reader, window, seed + 99);
}

static void close_sides(const struct moment_sides *sides)
{
	struct reader *index_reader = window_source_reader(sides->window);

	window_close(sides->window);
	reader_close(index_reader);
	reader_close(sides->reader);
}

static void check_trace(uint64_t seed, const struct window_random *like,
			const struct window_options *options, bool known)
{
	struct moment_sides sides = open_sides(seed, like, options, 0);

	for (int i = 0; i < MOMENTS; i++)
		check_moment(&sides);
	check_calls(&sides);
	for (int i = 0; i < MOMENTS; i++)
		check_plateaus(&sides);
	CHECK_EQ(known, sides.known > MOMENTS / 2);
	CHECK_EQ(known && (!like->one_process || like->one_heap), sides.plateaus > MOMENTS / 2);
	close_sides(&sides);
}

TEST(a_moment_is_the_same_from_the_index_and_from_the_trace)
{
	const struct window_options options = { 0 };

	for (uint64_t seed = 1; seed <= 30; seed++)
		check_trace(seed, &kinds[seed % 6], &options, true);
}

TEST(so_it_is_where_blocks_do_not_fit_into_memory)
{
	const struct window_options options = { .alive_bytes = 1 };

	for (uint64_t seed = 1; seed <= 10; seed++)
		check_trace(seed, &kinds[seed % 6], &options, true);
}

TEST(so_it_is_with_blocks_of_steps_of_the_usual_size)
{
	const struct index_shape shape = index_shape_for(256 << 20);
	const struct window_options options = { .shape = &shape };

	for (uint64_t seed = 1; seed <= 5; seed++)
		check_trace(seed, &kinds[seed % 6], &options, true);
}

TEST(a_trace_with_calls_after_the_end_of_their_process_is_read_itself)
{
	const struct window_options options = { 0 };
	struct window_random like = kinds[0];

	like.late = true;
	like.events *= 3;
	for (uint64_t seed = 1; seed <= 5; seed++)
		check_trace(seed, &like, &options, false);
}

TEST(moments_of_a_cut_trace_are_those_of_what_is_left)
{
	const struct window_options options = { 0 };

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct moment_sides sides =
			open_sides(seed, &kinds[seed % 6], &options, 9000 + seed * 777);

		for (int i = 0; i < MOMENTS; i++)
			check_moment(&sides);
		CHECK(sides.known > 0);
		close_sides(&sides);
	}
}
