// base/str.h: text that grows, and numbers as people read and write them.
#include "base/mem.h"
#include "base/str.h"
#include "test/test.h"

#include <string.h>

TEST(str_grows_by_every_kind_of_addition)
{
	struct str str = { 0 };

	CHECK_STR("", str_get(&str));
	str_add(&str, "lane");
	str_add_char(&str, ' ');
	str_format(&str, "%d of %s", 7, "8");
	str_add_bytes(&str, "...", 2);
	CHECK_STR("lane 7 of 8..", str_get(&str));
	CHECK_EQ(strlen(str.text), str.length);
	str_clear(&str);
	CHECK_STR("", str_get(&str));
	STR_FINI(&str, &str);
}

TEST(str_writes_numbers_of_any_length)
{
	struct str str = { 0 };

	str_add_digits(&str, 0);
	str_add_char(&str, ' ');
	str_add_digits(&str, UINT64_MAX);
	CHECK_STR("0 18446744073709551615", str_get(&str));
	str_fini(&str);
}

TEST(str_formats_more_than_it_had_room_for)
{
	struct str str = { 0 };

	for (int width = 0; width < 300; width++) {
		str_clear(&str);
		str_add(&str, "x");
		str_format(&str, "%*d", width, 5);
		CHECK_EQ((width ? width : 1) + 1, str.length);
		CHECK_EQ('5', str.text[str.length - 1]);
		CHECK_EQ('\0', str.text[str.length]);
	}
	str_fini(&str);
}

TEST(str_take_moves_the_text_out)
{
	struct str str = { 0 };
	char *text;

	str_add(&str, "mine");
	text = str_take(&str);
	CHECK_STR("mine", text);
	CHECK_EQ(0, str.length);
	CHECK(!str.text);
	mem_free(text);
	text = str_take(&str);
	CHECK_STR("", text);
	mem_free(text);
}

static void check_bytes(const char *expected, uint64_t bytes)
{
	char out[16];

	CHECK_STR(expected, str_bytes(bytes, out));
}

TEST(str_bytes_never_shows_1024_of_a_unit)
{
	check_bytes("0 B", 0);
	check_bytes("1023 B", 1023);
	check_bytes("1.0 KiB", 1024);
	check_bytes("1.5 KiB", 1536);
	check_bytes("1023.9 KiB", 1048473);
	check_bytes("1.0 MiB", 1048575);
	check_bytes("1.0 MiB", 1048576);
	check_bytes("2.0 GiB", UINT64_C(2) << 30);
	check_bytes("16.0 EiB", UINT64_MAX);
}

TEST(str_count_groups_by_three)
{
	char out[28];

	CHECK_STR("0", str_count(0, out));
	CHECK_STR("999", str_count(999, out));
	CHECK_STR("1,000", str_count(1000, out));
	CHECK_STR("1,234,567", str_count(1234567, out));
	CHECK_STR("18,446,744,073,709,551,615", str_count(UINT64_MAX, out));
}

static void check_duration(const char *expected, uint64_t duration_ns)
{
	char out[24];

	CHECK_STR(expected, str_duration(duration_ns, out));
}

TEST(str_duration_picks_the_unit_and_rounds_into_the_next)
{
	check_duration("0 ns", 0);
	check_duration("999 ns", 999);
	check_duration("1.000 us", 1000);
	check_duration("999.999 us", 999999);
	check_duration("1.000 ms", 1000000);
	check_duration("999.999 ms", 999999499);
	check_duration("1.000 s", 999999500);
	check_duration("1.235 s", 1234567890);
	check_duration("59.999 s", UINT64_C(59999499999));
	check_duration("1 min 00 s", UINT64_C(59999500000));
	check_duration("2 min 05 s", UINT64_C(125000000000));
	check_duration("307445734 min 34 s", UINT64_MAX);
}

static void check_size(uint64_t expected, const char *text)
{
	uint64_t bytes = 7;

	CHECK(str_parse_bytes(text, &bytes));
	CHECK_EQ(expected, bytes);
}

TEST(str_parse_bytes_reads_sizes_as_people_write_them)
{
	check_size(0, "0");
	check_size(12, "12");
	check_size(12, "12B");
	check_size(65536, "64K");
	check_size(65536, "64k");
	check_size(65536, "64KB");
	check_size(65536, "64KiB");
	check_size(1572864, "1.5MiB");
	check_size(UINT64_C(2) << 30, "2G");
	check_size(UINT64_MAX, "18446744073709551615");
	check_size(UINT64_C(15) << 60, "15E");
}

TEST(str_parse_bytes_refuses_what_is_not_a_size)
{
	static const char *const wrong[] = {
		"",
		"K",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1.5",
		"1.K",
		".5K",
		"1KK",
		"1iB",
		"1X",
		"16E",
		"18446744073709551616",
		"99999999999999999999K",
		"1.1234567890K",
		"0x10",
		"1e3",
	};
	uint64_t bytes = 7;

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		CHECK(!str_parse_bytes(wrong[i], &bytes));
	CHECK_EQ(7, bytes);
}

TEST(str_parse_count_takes_a_whole_number_and_nothing_else)
{
	uint64_t count = 7;

	CHECK(str_parse_count("18446744073709551615", &count));
	CHECK_EQ(UINT64_MAX, count);
	CHECK(str_parse_count("007", &count));
	CHECK_EQ(7, count);
	CHECK(!str_parse_count("18446744073709551616", &count));
	CHECK(!str_parse_count("", &count));
	CHECK(!str_parse_count("-1", &count));
	CHECK(!str_parse_count("1x", &count));
	CHECK(!str_parse_count(" 1", &count));
	CHECK_EQ(7, count);
}

static const char *const commands[] = { "record", "report", "info", "dump", "repair", NULL };

TEST(str_add_shell_quotes_what_a_shell_would_read_otherwise)
{
	static const char *const words[][2] = {
		{ "a-b_c+1=./,:@%^", "a-b_c+1=./,:@%^" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "it's", "'it'\\''s'" },
		{ "$(x)", "'$(x)'" },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct str str = { 0 };

		str_add_shell(&str, words[i][0]);
		CHECK_STR(words[i][1], str_get(&str));
		str_fini(&str);
	}
}

TEST(str_time_is_exact_and_one_word)
{
	CHECK_STR("0ns", STR_TIME(0));
	CHECK_STR("999ns", STR_TIME(999));
	CHECK_STR("1us", STR_TIME(1000));
	CHECK_STR("15.3ms", STR_TIME(15300000));
	CHECK_STR("1.000000001s", STR_TIME(1000000001));
	CHECK_STR("100s", STR_TIME(100000000000));
	CHECK_STR("18446744073.709551615s", STR_TIME(UINT64_MAX));
}

TEST(str_nearest_suggests_what_was_probably_meant)
{
	CHECK_STR("record", str_nearest("recrod", commands));
	CHECK_STR("record", str_nearest("rec", commands));
	CHECK_STR("report", str_nearest("repotr", commands));
	CHECK_STR("report", str_nearest("reporting", commands));
	CHECK_STR("info", str_nearest("inof", commands));
	CHECK_STR("dump", str_nearest("dumb", commands));
	CHECK_STR("repair", str_nearest("repaire", commands));
}

TEST(str_nearest_keeps_quiet_where_nothing_is_near)
{
	char longer[200];

	memset(longer, 'r', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CHECK(!str_nearest("", commands));
	CHECK(!str_nearest("x", commands));
	CHECK(!str_nearest("flamegraph", commands));
	CHECK(!str_nearest("ls", commands));
	CHECK(!str_nearest("foo", (const char *const[]){ "top", NULL }));
	CHECK(!str_nearest(longer, commands));
	CHECK(!str_nearest("record", (const char *const[]){ NULL }));
}

TEST(str_paths_of_windows_begin_with_a_drive_or_a_backslash)
{
	CHECK(str_is_windows_path("C:\\x\\y.dll"));
	CHECK(str_is_windows_path("z:/y.dll"));
	CHECK(str_is_windows_path("\\\\host\\share\\y.dll"));
	CHECK(str_is_windows_path("\\Device\\y.dll"));
	CHECK(!str_is_windows_path("/c/y.dll"));
	CHECK(!str_is_windows_path("/c\\y.dll"));
	CHECK(!str_is_windows_path("y.dll"));
	CHECK(!str_is_windows_path(""));
}

TEST(str_last_part_is_after_the_last_separator_of_the_paths_system)
{
	CHECK_STR("libm.so", str_last_part("/usr/lib/libm.so"));
	CHECK_STR("app", str_last_part("app"));
	CHECK_STR("", str_last_part("dir/"));
	CHECK_STR("", str_last_part(""));
	CHECK_STR("svc.exe", str_last_part("Z:\\work\\svc.exe"));
	CHECK_STR("svc.exe", str_last_part("\\\\server\\share/bin\\svc.exe"));
	CHECK_STR("svc.cpp", str_last_part("D:/build/src/svc.cpp"));
	CHECK_STR("svc.cpp", str_last_part("src\\svc.cpp"));
	CHECK_STR("a\\b", str_last_part("/tmp/a\\b"));
}

TEST(str_last_part_of_any_is_after_the_last_separator_of_either_system)
{
	CHECK_STR("y.dll", str_last_part_of_any("C:\\x/y.dll"));
	CHECK_STR("y.dll", str_last_part_of_any("/x\\y.dll"));
	CHECK_STR("y.dll", str_last_part_of_any("C:y.dll"));
	CHECK_STR("a:y.dll", str_last_part_of_any("/x/a:y.dll"));
	CHECK_STR("ab:y", str_last_part_of_any("ab:y"));
	CHECK_STR("y", str_last_part_of_any("y"));
	CHECK_STR("", str_last_part_of_any("x/"));
}
