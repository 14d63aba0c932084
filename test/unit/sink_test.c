// base/sink.h: everything arrives, or the first failure is told at the end.
#include "base/sink.h"
#include "test/test.h"

#include <errno.h>
#include <string.h>

TEST(sink_to_str_collects_text)
{
	struct str str = { 0 };
	struct sink sink = sink_to_str(&str);
	struct err err = { 0 };

	sink_text(&sink, "peak ");
	sink_format(&sink, "%d", 42);
	sink_write(&sink, " MiB\n!", 5);
	sink_write(&sink, NULL, 0);
	CHECK(sink_ok(&sink, &err));
	CHECK_STR("peak 42 MiB\n", str_get(&str));
	str_fini(&str);
}

TEST(sink_to_file_writes_the_same_bytes)
{
	const char *path = test_temp_path("out");
	FILE *file = fopen(path, "w+");
	struct sink sink = sink_to_file(file);
	struct err err = { 0 };
	char text[64] = "";

	CHECK(file);
	sink_text(&sink, "peak ");
	sink_format(&sink, "%d", 42);
	CHECK(sink_ok(&sink, &err));
	rewind(file);
	CHECK_EQ(7, fread(text, 1, sizeof text, file));
	CHECK_STR("peak 42", text);
	fclose(file);
}

TEST(sink_remembers_the_first_failure)
{
	FILE *file = fopen("/dev/full", "w");
	struct sink sink = sink_to_file(file);
	struct err err = { 0 };
	char much[1 << 16];

	if (!file)
		SKIP("/dev/full is not there");
	memset(much, 'x', sizeof much);
	sink_text(&sink, "a little fits into the buffer");
	CHECK_EQ(0, sink.error);
	sink_write(&sink, much, sizeof much);
	CHECK_EQ(ENOSPC, sink.error);
	sink_text(&sink, "more");
	sink_format(&sink, "%d", 1);
	CHECK(!sink_ok(&sink, &err));
	CHECK_EQ(ERR_IO, err.kind);
	CHECK_STR("cannot write the output: No space left on device", err.text);
	fclose(file);
}

TEST(sink_ok_finds_what_only_flushing_shows)
{
	FILE *file = fopen("/dev/full", "w");
	struct sink sink = sink_to_file(file);
	struct err err = { 0 };

	if (!file)
		SKIP("/dev/full is not there");
	sink_text(&sink, "short");
	CHECK(!sink_ok(&sink, &err));
	CHECK_EQ(ENOSPC, sink.error);
	fclose(file);
}
