// Moments are found where a person means them, and told when they are nowhere.
#include "engine/moment.h"
#include "test/unit/assembled.h"

// 10 s long, 5 events, numbered 0 to 4.
static const char trace[] = "process p pid=1\n"
			    "thread t p tid=1\n"
			    "@1000000000 t malloc 0x1000 10\n"
			    "@1000000000 mark p t \"load\"\n"
			    "@1000000000 t malloc 0x2000 20\n"
			    "@3000000000 mark p t \"step\"\n"
			    "@3000000000 t free 0x1000\n"
			    "@4000000000 mark p t \"step\"\n"
			    "@4000000000 t malloc 0x3000 5\n"
			    "@5000000000 mark p t \"a+2s\"\n"
			    "@5000000000 mark p t \"issue#7\"\n"
			    "@6000000000 t free 0x2000\n"
			    "@6000000000 mark p t \"step\"\n"
			    "end duration=10000000000\n";

static bool second_event(void *context, struct moment_edge *edge, struct err *err)
{
	(void)context;
	(void)err;
	*edge = (struct moment_edge){ .time_ns = 1000000000, .number = 2, .exact = true };
	return true;
}

static struct moment_edge found(const char *text)
{
	struct reader *reader = assembled_open(trace);
	struct moment_edge edge = { 0 };
	struct err err = { 0 };

	moment_find(text, reader, second_event, NULL, &edge, &err);
	CHECK_STR("", err.text);
	edge.mark = NULL;
	reader_close(reader);
	return edge;
}

static void check_time(uint64_t time_ns, const char *text)
{
	struct moment_edge edge = found(text);

	CHECK_EQ(time_ns, edge.time_ns);
	CHECK(!edge.exact);
}

static void check_edge(uint64_t number, const char *text)
{
	struct moment_edge edge = found(text);

	CHECK(edge.exact);
	CHECK_EQ(number, edge.number);
}

static void check_refused(const char *because, const char *text)
{
	struct reader *reader = assembled_open(trace);
	struct moment_edge edge = { 0 };
	struct err err = { 0 };

	CHECK(!moment_find(text, reader, second_event, NULL, &edge, &err));
	CHECK_EQ(ERR_USAGE, err.kind);
	CHECK_CONTAINS(because, err.text);
	reader_close(reader);
}

TEST(moment_is_a_time_since_the_beginning_or_before_the_end)
{
	check_time(2500000000, "2.5s");
	check_time(350000000, "350ms");
	check_time(12000, "12us");
	check_time(7, "7ns");
	check_time(3000000000, "3");
	check_time(6000000000, "0.1min");
	check_time(123456789, "0.123456789s");
	check_time(0, "0");
	check_time(10000000000, "10s");
	check_time(8000000000, "-2s");
	check_time(10000000000, "-0s");
	check_time(5000000000, "50%");
	check_time(1250000000, "12.5%");
	check_time(10000000000, "100%");
}

TEST(moment_is_an_edge_where_the_trace_has_one)
{
	check_edge(0, "begin");
	check_edge(UINT64_MAX, "end");
	check_edge(2, "peak");
	check_edge(1, "mark:load");
	check_edge(2, "mark:step");
	check_edge(2, "mark:step#1");
	check_edge(3, "mark:step#2");
	check_edge(5, "mark:step#3");
	check_edge(5, "mark:step#-1");
	check_edge(2, "mark:step#-3");
	CHECK_EQ(3, found("mark:step#2").same_count);
	CHECK_EQ(2, found("mark:step#2").nth);
}

TEST(moment_lies_at_a_distance_from_a_mark)
{
	check_time(3500000000, "mark:load+2.5s");
	check_time(900000000, "mark:load-100ms");
	check_time(5000000000, "mark:step#-1-1s");
	check_time(4000000001, "mark:step#2+1ns");
}

TEST(moment_lies_at_a_distance_from_the_peak_and_the_ends)
{
	check_time(1001000000, "peak+1ms");
	check_time(999999999, "peak-1ns");
	check_time(9999000000, "end-1ms");
	check_time(1500000000, "begin+1.5s");
	check_refused("before the beginning", "peak-2s");
	check_refused("after the end", "end+1ns");
	check_refused("is not a time", "peak+");
	check_refused("is not a time", "peak1ms");
	check_refused("is not a time", "end-1ms-1ms");
}

TEST(moment_takes_a_mark_by_its_name_as_it_is)
{
	check_edge(4, "mark:a+2s");
	check_edge(4, "mark:issue#7");
	check_time(6000000000, "mark:a+2s+1s");
}

TEST(moment_outside_the_trace_is_refused)
{
	check_refused("after the end of the trace, which is 10.000 s long", "10.1s");
	check_refused("before the beginning", "-11s");
	check_refused("before the beginning", "mark:load-2s");
	check_refused("after the end", "mark:step#3+1min");
}

TEST(moment_that_is_no_time_is_refused)
{
	const char *const texts[] = {
		"",      "s",    "x",    "1.5", "12 s", "1..2s",
		"1e3",   "110%", "-50%", "1x",  "--1s", "mark",
		"mark:", "Peak", ".",    "1.s", "+",    "99999999999999999999s",
		NULL
	};
	struct err err = { 0 };

	CHECK(moment_check("1.5", &err));
	for (size_t i = 0; texts[i]; i++)
		if (i != 3)
			check_refused("is not a time", texts[i]);
}

TEST(moment_by_a_mark_that_is_not_there_suggests_one)
{
	check_refused("did you mean 'step'?", "mark:setp");
	check_refused("did you mean 'load'?", "mark:laod+2s");
	check_refused("it has 'load', 'step', 'a+2s', 'issue#7'", "mark:nowhere-near");
	check_refused("was set 3 times", "mark:step#4");
	check_refused("was set 3 times", "mark:step#0");
	check_refused("was set 3 times", "mark:step#-4");
}

static void check_window(const char *because, const char *from, const char *to)
{
	struct reader *reader = assembled_open(trace);
	struct moment_edge edges[2];
	struct err err = { 0 };
	bool good = moment_find_window(from, to, reader, NULL, NULL, edges, &err);

	CHECK_EQ(!because, good);
	CHECK_CONTAINS(because ? because : "", err.text);
	reader_close(reader);
}

TEST(moment_window_goes_forward)
{
	check_window(NULL, NULL, NULL);
	check_window(NULL, "2s", "2s");
	check_window(NULL, "mark:load", "mark:step");
	check_window(NULL, "mark:step", "mark:step");
	check_window("--from 3s (3.000 s) is after --to 2s (2.000 s)", "3s", "2s");
	check_window("is after --to mark:load", "mark:step", "mark:load");
	check_window("--to: no mark", "mark:step", "mark:stop it");
}

TEST(moment_window_knows_the_order_within_a_tick)
{
	struct reader *reader = assembled_open("process p pid=1\n"
					       "thread t p tid=1\n"
					       "@5 mark p t \"b\"\n"
					       "@5 t malloc 0x1000 1\n"
					       "@5 mark p t \"a\"\n"
					       "end\n");
	struct moment_edge edges[2];
	struct err err = { 0 };

	CHECK(moment_find_window("mark:b", "mark:a", reader, NULL, NULL, edges, &err));
	CHECK(!moment_find_window("mark:a", "mark:b", reader, NULL, NULL, edges, &err));
	reader_close(reader);
}
