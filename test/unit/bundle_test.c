// What trace/bundle.h promises: files are added behind a trace, and an interruption does no harm.
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/bundle.h"

static const uint8_t first_id[] = { 1, 2, 3 }, second_id[] = { 4, 5 };

static void add(const char *path, const uint8_t *id, size_t length, const char *text)
{
	struct err err = { 0 };
	struct bundle *bundle = bundle_begin(path, &err);

	CHECK_STR("", err.text);
	CHECK(bundle_add(bundle, id, length, text, strlen(text), &err));
	CHECK(bundle_end(bundle, &err));
	bundle_free(bundle);
}

static void check_bundled(const char *path, const uint8_t *id, size_t length, const char *expected)
{
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);
	const void *bytes;
	size_t size;

	reader_scan(reader);
	bytes = reader_bundle(reader, id, length, &size);
	CHECK_EQ(expected == NULL, bytes == NULL);
	if (expected) {
		CHECK_EQ(strlen(expected), size);
		CHECK_BYTES(expected, bytes, size);
	}
	reader_close(reader);
}

static uint64_t items_of(const char *path, bool *complete)
{
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);
	struct trace_event event;
	struct trace_note note;
	uint64_t count = 0;

	CHECK(reader != NULL);
	while (reader_next(reader, &event, &note) != READER_END)
		count++;
	*complete = reader_complete(reader);
	reader_close(reader);
	return count;
}

TEST(bundle_adds_files_and_changes_nothing_else)
{
	const char *path = test_temp_path("a.tide");
	struct sample sample = { 0 };
	uint8_t *before, *after;
	size_t size, grown;
	bool complete;

	sample_write(path, 1, 500, &sample);
	before = sample_load(path, &size);
	add(path, first_id, sizeof first_id, "names of the first");
	add(path, second_id, sizeof second_id, "names of the second");
	after = sample_load(path, &grown);
	CHECK(grown > size);
	CHECK_EQ(0, memcmp(before, after, size));
	check_bundled(path, first_id, sizeof first_id, "names of the first");
	check_bundled(path, second_id, sizeof second_id, "names of the second");
	check_bundled(path, second_id, 1, NULL);
	CHECK_EQ(sample.count, items_of(path, &complete));
	CHECK(complete);
	mem_free(before);
	mem_free(after);
	sample_fini(&sample);
}

TEST(bundle_cut_anywhere_leaves_the_trace_complete)
{
	const char *path = test_temp_path("a.tide");
	struct sample sample = { 0 };
	uint8_t *bytes;
	size_t size, grown;
	bool complete;

	sample_write(path, 1, 500, &sample);
	mem_free(sample_load(path, &size));
	add(path, first_id, sizeof first_id, "names of the first, which take some room");
	bytes = sample_load(path, &grown);
	for (size_t cut = size; cut <= grown; cut++) {
		sample_store(path, bytes, cut);
		CHECK_EQ(sample.count, items_of(path, &complete));
		CHECK(complete);
	}
	// An addition that was interrupted can be made again.
	sample_store(path, bytes, size + 100);
	add(path, first_id, sizeof first_id, "again");
	check_bundled(path, first_id, sizeof first_id, "again");
	CHECK_EQ(sample.count, items_of(path, &complete));
	CHECK(complete);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(bundle_not_ended_is_taken_away_again)
{
	const char *path = test_temp_path("a.tide");
	struct sample sample = { 0 };
	struct err err = { 0 };
	struct bundle *bundle;
	size_t size, after;

	sample_write(path, 1, 500, &sample);
	mem_free(sample_load(path, &size));
	bundle = bundle_begin(path, &err);
	CHECK(bundle_add(bundle, first_id, sizeof first_id, "text", 4, &err));
	bundle_free(bundle);
	mem_free(sample_load(path, &after));
	CHECK_EQ(size, after);
	sample_fini(&sample);
}

TEST(bundle_is_refused_by_a_trace_that_is_cut)
{
	const char *path = test_temp_path("a.tide");
	struct sample sample = { 0 };
	struct err err = { 0 };
	uint8_t *bytes;
	size_t size;

	sample_write(path, 1, 500, &sample);
	bytes = sample_load(path, &size);
	sample_store(path, bytes, size - 10);
	CHECK(bundle_begin(path, &err) == NULL);
	CHECK_CONTAINS("(try: tidemark repair)", err.text);
	CHECK(bundle_begin(test_temp_path("missing"), &err) == NULL);
	mem_free(bytes);
	sample_fini(&sample);
}

TEST(bundle_of_a_file_that_is_there_takes_its_place)
{
	const char *path = test_temp_path("a.tide");
	struct sample sample = { 0 };

	sample_write(path, 1, 500, &sample);
	add(path, first_id, sizeof first_id, "names of the first");
	add(path, second_id, sizeof second_id, "names of the second");
	add(path, first_id, sizeof first_id, "more names");
	check_bundled(path, first_id, sizeof first_id, "more names");
	check_bundled(path, second_id, sizeof second_id, "names of the second");
	sample_fini(&sample);
}
