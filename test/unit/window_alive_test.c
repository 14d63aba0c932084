// What an index says lives at a moment is what lives there when the trace is read.
#include "engine/window_alive.h"

#include "base/mem.h"
#include "engine/replay/lives.h"
#include "test/unit/index_small.h"
#include "test/unit/window_random.h"

enum { EVENTS = 4000, MOMENTS = 30 };

// The life of the block that an event began.
struct life {
	bool begun;
	uint64_t end; // number of the event that ended it; UINT64_MAX: none did
	bool gone;    // with its process
	uint64_t gone_at;
};

static void begin(void *context, const struct lives_block *block)
{
	struct life *lives = context;

	lives[block->number] = (struct life){ .begun = true, .end = UINT64_MAX };
}

static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct life *life = (struct life *)context + block->number;

	if (block->origin != LIVES_BEGUN || end->cause == LIVES_RUNNING)
		return;
	life->gone = end->cause >= LIVES_EXIT;
	if (life->gone)
		life->gone_at = end->number;
	else
		life->end = end->number;
}

static struct life *read_lives(struct reader *reader)
{
	struct life *list = mem_alloc(EVENTS + 1, sizeof *list);
	const struct lives_watcher watcher = { .begin = begin, .end = end, .context = list };
	struct progress progress = { .mode = PROGRESS_NONE };
	struct map undone = { 0 };
	struct lives *lives;

	lives_find_undone(reader, &undone, &progress);
	lives = lives_new(reader, &watcher, &undone);
	CHECK(lives_read(lives, reader, &progress));
	lives_free(lives);
	map_fini(&undone);
	return list;
}

static void check_bits(const struct window_alive *alive, const struct life *lives, uint64_t from,
		       uint64_t to)
{
	uint64_t next = window_alive_next(alive, 0), count = 0;

	for (uint64_t number = 0; number < from; number++) {
		const struct life *life = &lives[number];
		bool lived = life->begun && life->end >= from &&
			     (!life->gone || life->gone_at > from);
		bool has = window_alive_has(alive, number);

		count += has;
		if (has || number + 1 == from) {
			CHECK_EQ(number, next);
			next = window_alive_next(alive, number + 1);
		}
		// One that goes with its process right there may be in or not.
		if (!(life->gone && (life->gone_at == from || life->gone_at == to)))
			CHECK_EQ(lived && (to == UINT64_MAX || life->end < to ||
					   (life->gone && life->gone_at < to)),
				 has);
	}
	CHECK_EQ(count, alive->count);
	CHECK_EQ(UINT64_MAX, window_alive_next(alive, alive->number));
	CHECK(!window_alive_has(alive, from) && alive->most >= count);
}

static void check_trace(uint64_t seed, const struct window_random *like)
{
	struct window_options options = { .progress = PROGRESS_NONE };
	struct err err = { 0 };
	struct reader *reader = window_random_open(seed, like, 0);
	struct life *lives = read_lives(reader);
	struct window *window;
	struct window_alive alive;

	options.index_path = test_temp_path("random.tide-index");
	window = window_open(test_temp_path("random.tide"), reader, &options, &err);
	CHECK_STR("", err.text);
	for (uint64_t i = 1; i <= MOMENTS; i++) {
		const struct moment_edge from = { .number = i * (EVENTS / 2) / MOMENTS,
						  .exact = true };
		const struct moment_edge to = { .number = from.number + EVENTS / 8, .exact = true };
		struct window_alive_wish wish = { .from = &from, .exit_frees = true };

		CHECK(window_alive_find(&alive, window, &wish));
		CHECK(alive.number <= from.number);
		for (uint64_t number = alive.number; number < from.number; number++)
			CHECK(!lives[number].begun); // it is of no block
		check_bits(&alive, lives, alive.number, UINT64_MAX);
		window_alive_fini(&alive);
		wish.to = &to;
		wish.ended = true;
		CHECK(window_alive_find(&alive, window, &wish));
		check_bits(&alive, lives, alive.number, to.number);
		window_alive_fini(&alive);
	}
	window_close(window);
	reader_close(reader);
	mem_free(lives);
}

TEST(what_lives_at_a_moment_is_known_by_its_events)
{
	const struct window_random like = { .events = EVENTS,
					    .addresses = 900,
					    .free_share = 45,
					    .idle_share = 40,
					    .clean = true };

	for (uint64_t seed = 1; seed < 6; seed++)
		check_trace(seed, &like);
}

TEST(an_index_that_differs_from_its_trace_is_not_asked)
{
	const struct window_random like = {
		.events = EVENTS, .addresses = 900, .free_share = 45, .idle_share = 40, .late = true
	};
	struct window_options options = { .plain = true, .progress = PROGRESS_NONE };
	const struct window_alive_wish wish = { 0 };
	struct err err = { 0 };
	struct reader *reader = window_random_open(7, &like, 0);
	struct window *window = window_open(test_temp_path("random.tide"), reader, &options, &err);
	struct window_alive alive;

	CHECK(!window_alive_find(&alive, window, &wish)); // there is none
	window_close(window);
	options = (struct window_options){ .progress = PROGRESS_NONE };
	options.index_path = test_temp_path("random.tide-index");
	window = window_open(test_temp_path("random.tide"), reader, &options, &err);
	CHECK(!window_alive_find(&alive, window, &wish)); // events after their process's end
	window_close(window);
	reader_close(reader);
}
