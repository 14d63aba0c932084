// What an index says of a moment is what reading the trace up to there says.
#include "base/mem.h"
#include "engine/index/index.h"
#include "engine/replay/lives.h"
#include "test/unit/index_small.h"
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
	const struct window_options options = { 0 };

	index_small_alive = 1;
	for (uint64_t seed = 1; seed <= 10; seed++)
		check_trace(seed, &kinds[seed % 6], &options, true);
	index_small_alive = 0;
}

TEST(so_it_is_with_blocks_of_steps_of_the_usual_size)
{
	const struct window_options options = { 0 };

	index_small_blocks(false);
	for (uint64_t seed = 1; seed <= 5; seed++)
		check_trace(seed, &kinds[seed % 6], &options, true);
	index_small_blocks(true);
}

// Who shows a few of millions of blocks asks for the dates of these alone, once all were seen.
TEST(blocks_are_dated_after_all_were_seen_as_they_are_before)
{
	const struct window_options options = { 0 };
	size_t late = 0;

	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct moment_sides sides = open_sides(seed, &kinds[seed % 6], &options, 0);
		struct present_options wanted = { .at_exit = true, .inherits = TRACE_NONE };
		struct present *before = window_source_moment(sides.window, &wanted), *after;

		wanted.dated_late = true;
		after = window_source_moment(sides.window, &wanted);
		CHECK(before && after);
		for (process_id id = 0; id < reader_processes_count(sides.reader); id++) {
			struct present_list one = present_list(before, id);
			struct present_list other = present_list(after, id);

			for (size_t i = 0; i < other.count; i++)
				late += other.blocks[i].time_ns == 0;
			present_date(after, other.blocks, other.count);
			CHECK_EQ(one.count, other.count);
			for (size_t i = 0; i < one.count && i < other.count; i++) {
				CHECK_EQ(one.blocks[i].address, other.blocks[i].address);
				CHECK_EQ(one.blocks[i].time_ns, other.blocks[i].time_ns);
				CHECK_EQ(one.blocks[i].number, other.blocks[i].number);
			}
			MEM_FREE(one.blocks, other.blocks);
		}
		present_free(before);
		present_free(after);
		close_sides(&sides);
	}
	CHECK(late > 0);
}

// A block of steps has the dates of what began in it. They are read twice: so that a list of
// millions need not have them, it is seen first that they can be.
TEST(dates_that_went_away_since_are_an_error_and_not_zero)
{
	const struct window_options options = { 0 };
	size_t dated = 0;

	for (uint64_t seed = 1; seed <= 6; seed++) {
		const struct present_options wanted = { .at_exit = true, .inherits = TRACE_NONE };
		struct moment_sides sides = open_sides(seed, &kinds[5], &options, 0);
		struct present *present = window_source_moment(sides.window, &wanted);
		struct err err = { 0 };
		struct present_list list;

		CHECK(present != NULL);
		CHECK_EQ(0, truncate(test_temp_path("random.tide-index/times"), 0));
		list = present_list(present, 0);
		dated += list.count;
		for (size_t i = 0; i < list.count; i++)
			CHECK(list.blocks[i].number > 0 || list.blocks[i].time_ns > 0);
		CHECK(list.count > 0 || !present_ok(present, &err));
		if (list.count == 0)
			CHECK_CONTAINS("times is cut", err.text);
		mem_free(list.blocks);
		present_free(present);
		close_sides(&sides);
	}
	CHECK_EQ(0, dated);
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

// ---- lives ----

// What a listener is told, as one number: blocks by which of all that began they are.
struct life_heard {
	struct map ordinals; // by a block's number
	uint64_t sum, begun, ended, failed;
};

static void hear_word(struct life_heard *heard, uint64_t word)
{
	heard->sum = (heard->sum ^ word) * UINT64_C(0x100000001b3);
}

static void hear_place(struct life_heard *heard, const struct lives_block *block)
{
	hear_word(heard, block->address);
	hear_word(heard, block->size);
	hear_word(heard, block->process);
	hear_word(heard, block->thread);
	hear_word(heard, block->stack);
	hear_word(heard, block->heap);
}

static void hear_begin(void *context, const struct lives_block *block)
{
	struct life_heard *heard = context;

	*map_put(&heard->ordinals, block->number, NULL) = ++heard->begun;
	hear_place(heard, block);
	hear_word(heard, block->time_ns);
	hear_word(heard, block->old_address);
	hear_word(heard, block->kind);
	hear_word(heard, block->moved);
}

static void hear_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct life_heard *heard = context;
	const uint64_t *ordinal = map_find(&heard->ordinals, block->number);

	if (block->origin != LIVES_BEGUN || end->cause > LIVES_REALLOC)
		return;
	heard->ended++;
	hear_place(heard, block);
	hear_word(heard, ordinal ? *ordinal : 0);
	hear_word(heard, end->cause);
	hear_word(heard, end->number);
	hear_word(heard, end->time_ns);
	hear_word(heard, end->thread);
	hear_word(heard, end->stack);
}

static void hear_failed(void *context, const struct trace_event *event)
{
	struct life_heard *heard = context;

	heard->failed++;
	hear_word(heard, event->number);
}

static void hear_over(void *context, process_id process)
{
	(void)context;
	(void)process;
}

// True: the index knew.
static bool check_lives(const struct moment_sides *sides)
{
	struct life_heard right = { 0 }, found = { 0 };
	struct lives_watcher watcher = {
		.begin = hear_begin, .end = hear_end, .failed = hear_failed, .context = &right
	};
	struct lives *lives = lives_new(sides->reader, &watcher, NULL);
	struct err err = { 0 };
	bool known;

	lives_read(lives, sides->reader, NULL);
	lives_free(lives);
	watcher.context = &found;
	CHECK(window_source_lives(sides->window, &watcher, hear_over, NULL, &known, &err));
	CHECK_STR("", err.text);
	if (known) {
		CHECK_EQ(right.begun, found.begun);
		CHECK_EQ(right.ended, found.ended);
		CHECK_EQ(right.failed, found.failed);
		CHECK_EQ(right.sum, found.sum);
		CHECK(right.ended > EVENTS / 10);
	} else {
		CHECK_EQ(0, found.begun);
	}
	MAP_FINI(&right.ordinals, &found.ordinals);
	return known;
}

TEST(lives_are_the_same_from_the_index_where_it_knows_them)
{
	const struct window_options options = { 0 };
	int known = 0;

	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct window_random like = kinds[seed % 6];
		struct moment_sides sides;

		// Orphans, lost frees, heaps that are destroyed: the index leaves these to others.
		like.clean = seed % 4 != 0;
		like.one_heap = seed % 8 < 6;
		index_small_blocks(seed % 3);
		sides = open_sides(seed, &like, &options, 0);
		known += check_lives(&sides);
		close_sides(&sides);
	}
	index_small_blocks(true);
	CHECK(known >= 12);
	CHECK(known < 24);
}
