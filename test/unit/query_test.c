// Words of --process and --thread find what a person means.
#include "engine/query.h"
#include "test/unit/assembled.h"

static const char trace[] = "process a pid=100 exe=\"/usr/bin/make\"\n"
			    "process b pid=1 exe=\"/usr/lib/gcc/cc1\"\n"
			    "process c pid=100 generation=1 exe=\"/usr/lib/gcc/cc1\"\n"
			    "thread t a tid=100 \"make\"\n"
			    "thread u a tid=107 \"worker\"\n"
			    "thread v c tid=100 \"worker\"\n"
			    "end\n";

static void check_processes(const char *word, const char *expected)
{
	struct reader *reader = assembled_open(trace);
	struct query query = { 0 };
	struct err err = { 0 };
	char found[4] = "";

	query_add_process(&query, reader, word, &err);
	for (process_id id = 0; id < 3; id++)
		found[id] = query_has_process(&query, id) ? 'x' : '-';
	CHECK_STR(expected, found);
	query_fini(&query);
	reader_close(reader);
}

TEST(query_finds_processes_by_pid_position_and_executable)
{
	check_processes("100", "x-x");
	check_processes("1", "-x-"); // the pid wins over the position
	check_processes("2", "--x"); // nobody's pid: the position
	check_processes("0", "x--");
	check_processes("cc1", "-xx");
	check_processes("/usr/bin/make", "x--");
	check_processes("bin/make", "---");
}

TEST(query_finds_programs_of_windows_by_the_last_part_without_case)
{
	struct reader *reader = assembled_open(
		"process a pid=304 exe=\"Z:\\\\work\\\\Faults.exe\" arg=\"bin\\\\run.exe\"\n"
		"process b pid=340 exe=\"/srv/Faults.exe\"\n"
		"end\n");
	static const struct {
		const char *word;
		bool windows, other;
	} words[] = {
		{ "Faults.exe", true, true },
		{ "faults.EXE", true, false },
		{ "z:\\work\\faults.exe", true, false },
		{ "run.exe", true, false },
		{ "/srv/Faults.exe", false, true },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct query query = { 0 };
		struct err err = { 0 };

		CHECK(query_add_process(&query, reader, words[i].word, &err));
		CHECK_EQ(words[i].windows, query_has_process(&query, 0));
		CHECK_EQ(words[i].other, query_has_process(&query, 1));
		query_fini(&query);
	}
	reader_close(reader);
}

TEST(query_says_when_a_word_names_nothing)
{
	struct reader *reader = assembled_open(trace);
	struct query query = { 0 };
	struct err err = { 0 };

	CHECK(!query_add_process(&query, reader, "99", &err));
	CHECK_EQ(ERR_USAGE, err.kind);
	CHECK_CONTAINS("'99'", err.text);
	CHECK(!query_add_thread(&query, reader, "nobody", &err));
	CHECK_EQ(ERR_USAGE, err.kind);
	CHECK_CONTAINS("'nobody'", err.text);
	query_fini(&query);
	reader_close(reader);
}

TEST(query_of_two_words_means_either)
{
	struct reader *reader = assembled_open(trace);
	struct query query = { 0 };
	struct err err = { 0 };

	CHECK(!query_narrows(&query));
	CHECK(query_has_thread(&query, 0));
	CHECK(query_add_thread(&query, reader, "worker", &err));
	CHECK(query_narrows(&query));
	CHECK(!query_has_thread(&query, 0));
	CHECK(query_add_thread(&query, reader, "100", &err));
	CHECK(query_has_thread(&query, 0));
	CHECK(query_has_thread(&query, 1));
	CHECK(query_has_thread(&query, 2));
	CHECK(!query_has_thread(&query, 3)); // one that came later than the question
	query_fini(&query);
	reader_close(reader);
}
