// Windows over small traces that are spelled out, where every number can be counted by hand.
#include "base/mem.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "test/unit/assembled.h"

static const char head[] = "process p1 pid=42 exe=/bin/app\n"
			   "thread  t1 \"main\"\n"
			   "stack   s1  work app.c:10 < main app.c:3\n"
			   "stack   s2  rest app.c:20 < main app.c:4\n";

struct opened {
	struct reader *reader;
	struct window *window;
	char text[4096];
};

static struct opened open_text(const char *text)
{
	const struct window_options options = { .plain = true, .progress = PROGRESS_NONE };
	struct opened opened = { 0 };
	struct err err = { 0 };

	snprintf(opened.text, sizeof opened.text, "%s%s", head, text);
	opened.reader = assembled_open(opened.text);
	opened.window =
		window_open(test_temp_path("assembled.tide"), opened.reader, &options, &err);
	CHECK_STR("", err.text);
	return opened;
}

static void close_text(struct opened *opened)
{
	window_close(opened->window);
	reader_close(opened->reader);
}

static struct window_row ask_more(struct opened *opened, uint64_t from, uint64_t to,
				  bool exit_frees, struct window_rest *rest)
{
	const struct window_query query = { .from = from, .to = to, .exit_frees = exit_frees };
	struct window_result result;
	struct window_row total;
	struct err err = { 0 };

	CHECK(window_ask(opened->window, &query, &result, &err));
	total = result.total;
	*rest = result.total_rest;
	window_result_fini(&result);
	return total;
}

static struct window_row ask(struct opened *opened, uint64_t from, uint64_t to, bool exit_frees)
{
	struct window_rest rest;

	return ask_more(opened, from, to, exit_frees, &rest);
}

static const char four[] = "@10ns t1 alloc s1 0x1000 1\n"
			   "@10ns t1 alloc s1 0x2000 2\n"
			   "@20ns t1 alloc s2 0x3000 4\n"
			   "@20ns t1 alloc s2 0x4000 8\n"
			   "@25ns t1 free 0x1000\n"
			   "@25ns t1 free 0x3000\n"
			   "@40ns t1 free 0x4000\n"
			   "end\n";

TEST(the_four_classes_are_where_a_lifetime_begins_and_ends)
{
	struct opened opened = open_text(four);
	uint64_t from = window_edge_at(opened.window, 10), to = window_edge_at(opened.window, 30);
	struct window_row row = ask(&opened, from, to, false);

	CHECK_EQ(4, row.type[WINDOW_AIFI].bytes);
	CHECK_EQ(8, row.type[WINDOW_AIFO].bytes);
	CHECK_EQ(1, row.type[WINDOW_AOFI].bytes);
	CHECK_EQ(2, row.type[WINDOW_AOFO].bytes);
	CHECK_EQ(4, window_present(&row).count);
	CHECK_EQ(15, window_present(&row).bytes);
	CHECK_EQ(7, window_impact(&row));
	close_text(&opened);
}

TEST(an_edge_lies_behind_the_last_step_of_its_time)
{
	struct opened opened = open_text(four);

	CHECK_EQ(WINDOW_START, window_edge_at(opened.window, 9));
	CHECK_EQ(3, window_edge_at(opened.window, 10));
	CHECK_EQ(10, window_edge_time(opened.window, 3));
	CHECK_EQ(7, window_edge_at(opened.window, 39));
	CHECK_EQ(8, window_edge_at(opened.window, 1000));
	CHECK_EQ(8, window_facts(opened.window)->steps_end);
	close_text(&opened);
}

TEST(the_edge_between_the_two_steps_of_a_realloc_splits_its_event)
{
	struct opened opened = open_text("@10ns t1 alloc s1 0x1000 1\n"
					 "@10ns t1 realloc s1 0x1000 -> 0x2000 2\n"
					 "@10ns t1 realloc-free 0x2000\n"
					 "@10ns t1 realloc-alloc s1 0x3000 3\n"
					 "end\n");

	for (uint64_t edge = 0; edge < 8; edge++)
		CHECK_EQ(edge == 3, window_edge_splits(opened.window, edge));
	close_text(&opened);
}

TEST(an_exit_ends_blocks_only_where_it_is_asked_to)
{
	struct opened opened = open_text("@10ns t1 alloc s1 0x1000 64\n"
					 "@20ns end p1 exit=0\n"
					 "end\n");
	uint64_t to = window_facts(opened.window)->steps_end;
	struct window_rest rest;
	struct window_row row = ask_more(&opened, WINDOW_START, to, false, &rest);

	CHECK_EQ(1, row.type[WINDOW_AIFO].count);
	CHECK_EQ(64, rest.by_exit.bytes);
	row = ask_more(&opened, WINDOW_START, to, true, &rest);
	CHECK_EQ(0, row.type[WINDOW_AIFO].count);
	CHECK_EQ(1, row.type[WINDOW_AIFI].count);
	CHECK_EQ(1, rest.by_exit.count);
	close_text(&opened);
}

TEST(a_realloc_ends_one_lifetime_and_begins_another)
{
	struct opened opened = open_text("@10ns t1 alloc s1 0x1000 64\n"
					 "@20ns t1 realloc s2 0x1000 -> 0x1000 128\n"
					 "@30ns t1 free 0x7000\n"
					 "end\n");
	struct window_rest rest;
	struct window_row row = ask_more(&opened, WINDOW_START, 4, false, &rest);

	CHECK_EQ(64, row.type[WINDOW_AIFI].bytes);
	CHECK_EQ(128, row.type[WINDOW_AIFO].bytes);
	CHECK_EQ(0, rest.orphans);
	row = ask_more(&opened, 4, 5, false, &rest);
	CHECK_EQ(1, rest.orphans);
	CHECK_EQ(128, row.type[WINDOW_AOFO].bytes);
	close_text(&opened);
}

TEST(a_bucket_keeps_the_height_of_a_spike)
{
	struct opened opened = open_text("@10ns t1 alloc s1 0x1000 64\n"
					 "@41ns t1 alloc s1 0x2000 1000\n"
					 "@42ns t1 free 0x2000\n"
					 "@100ns t1 free 0x1000\n"
					 "end\n");
	const struct window_query query = {
		.from = WINDOW_START, .to = 5, .from_ns = 0, .to_ns = 100, .layers = WINDOW_HEAP
	};
	struct window_bucket buckets[10];
	struct err err = { 0 };

	CHECK(window_timeline(opened.window, &query, buckets, 10, &err));
	CHECK_EQ(64, buckets[0].bytes_peak);
	CHECK_EQ(64, buckets[3].bytes_peak);
	CHECK_EQ(1064, buckets[4].bytes_peak);
	CHECK_EQ(64, buckets[4].bytes_end);
	CHECK_EQ(0, buckets[9].bytes_end);
	close_text(&opened);
}

static bool keep(void *context, const struct window_allocation *allocation)
{
	struct window_allocation **at = context;

	*(*at)++ = *allocation;
	return true;
}

TEST(single_allocations_have_addresses_and_ends)
{
	struct opened opened = open_text("@10ns t1 alloc s1 0x1000 64\n"
					 "@20ns t1 realloc s2 0x1000 -> 0x2000 128\n"
					 "@30ns t1 alloc s1 0x2000 32\n"
					 "end\n");
	const struct window_query query = { .from = WINDOW_START, .to = 6, .by_size = true };
	struct window_allocation list[3], *at = list;
	struct err err = { 0 };

	CHECK(window_walk(opened.window, &query, keep, &at, &err));
	CHECK_EQ(3, at - list);
	CHECK(window_fetch(opened.window, list, 3, &err));
	CHECK_STR("", err.text);
	CHECK_EQ(0x1000, list[0].address);
	CHECK_EQ(WINDOW_END_REALLOC, list[0].end_kind);
	CHECK(list[1].reallocated);
	CHECK_EQ(0x2000, list[1].address);
	CHECK_EQ(WINDOW_END_LOST, list[1].end_kind);
	CHECK_EQ(WINDOW_END_NEVER, list[2].end_kind);
	CHECK_EQ(20, list[1].begin_ns);
	CHECK_EQ(30, list[1].end_ns);
	close_text(&opened);
}

TEST(a_lifetime_class_begins_where_its_floor_is)
{
	for (uint32_t i = 0; i < 62 * 8; i++)
		CHECK_EQ(i, window_lifetime_class(window_lifetime_floor(i)));
	CHECK_EQ(8, window_lifetime_class(8));
	CHECK(window_lifetime_class(UINT64_MAX) < WINDOW_LIFETIME_CLASSES);
}

struct level {
	uint64_t bytes;
	char told[256];
};

static bool follow(void *context, const struct window_change *change)
{
	struct level *level = context;
	size_t used = strlen(level->told);

	level->bytes += change->up ? change->bytes : 0 - change->bytes;
	if (change->last)
		snprintf(level->told + used, sizeof level->told - used, "%d@%d ", (int)level->bytes,
			 (int)change->time_ns);
	return true;
}

TEST(changes_tell_the_level_step_by_step)
{
	struct opened opened = open_text(four);
	const struct window_query query = { .from = window_edge_at(opened.window, 10),
					    .to = window_edge_at(opened.window, 30) };
	struct level level = { .bytes = 3 };
	struct window_bucket buckets[2];
	struct err err = { 0 };

	CHECK(window_changes(opened.window, &query, follow, &level, &err));
	CHECK_STR("7@20 15@20 14@25 10@25 ", level.told);
	CHECK(window_series(opened.window, &query, 1, buckets, 2, &err));
	CHECK_EQ(3, buckets[0].bytes_low);
	CHECK_EQ(3, buckets[1].bytes_low);
	CHECK_EQ(15, buckets[1].bytes_peak);
	close_text(&opened);
}
