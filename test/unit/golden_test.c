// Reports as they should be: each trace of test/traces, assembled and reported, gives the text in
// test/golden word for word. After a change that is meant, run with TIDEMARK_ACCEPT=1 to keep what
// comes out now, and read the difference before committing it.
#include "base/mem.h"
#include "report/report.h"
#include "test/test.h"
#include "test/unit/assembled.h"

#include <stdio.h>
#include <stdlib.h>

static char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	struct str text = { 0 };
	char bytes[4096];
	size_t got;

	if (!file)
		return NULL;
	while ((got = fread(bytes, 1, sizeof bytes, file)) > 0)
		str_add_bytes(&text, bytes, got);
	fclose(file);
	*size = text.length;
	str_add(&text, "");
	return str_take(&text);
}

// "ROOT/test/DIR/NAME.EXTENSION"; owned by the caller.
static char *path_of(const char *dir, const char *name, const char *extension)
{
	struct str path = { 0 };

	str_format(&path, "test/%s/%s.%s", dir, name, extension);
	return str_take(&path);
}

static struct reader *assemble(const char *name)
{
	char *path = path_of("traces", name, "txt");
	size_t size = 0;
	char *text = read_file(test_source_path(path), &size);
	struct reader *reader;

	CHECK(text != NULL);
	reader = assembled_open(text);
	mem_free(text);
	mem_free(path);
	return reader;
}

// What a test asks for.
struct wanted {
	struct report_options report;
	struct selection_words words;
};

static void write_csv(struct report *report, struct sink *sink)
{
	struct sheet sheet = { .form = &sheet_csv, .sink = sink };

	report_rows(report, 0, SITES_QUESTIONS_COUNT, &sheet);
}

static const struct form {
	enum sites_merge merge;
	void (*write)(struct report *report, struct sink *sink);
} as_text = { SITES_AS_SHOWN, report_text }, as_json = { SITES_EXACT, report_json },
  as_csv = { SITES_EXACT, write_csv };

static char *make_report(const char *trace, const struct form *form, const struct wanted *wanted)
{
	const struct symbols_options symbols = { 0 };
	struct opened opened = { .reader = assemble(trace) };
	const struct query_context_options options = {
		.rules = &report_rules,
		.words = &wanted->words,
		.opened = &opened,
		.window.progress = PROGRESS_NONE,
	};
	struct err err = { 0 };
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct query_context asked;
	struct report *report;

	reader_scan(opened.reader);
	opened.symbols = symbols_new(opened.reader, &symbols);
	opened.names = names_new(opened.reader, opened.symbols);
	CHECK(query_context_open(&asked, &options, &err));
	report = report_new(&asked, &wanted->report, form->merge, &err);
	CHECK_STR("", err.text);
	form->write(report, &sink);
	report_free(report);
	query_context_close(&asked);
	opened_close(&opened);
	return str_take(&text);
}

// The first line where two texts differ, from 1; 0 if they do not.
static int first_difference(const char *expected, const char *actual)
{
	int line = 1;

	for (; *expected && *expected == *actual; expected++, actual++)
		line += *expected == '\n';
	return *expected == *actual ? 0 : line;
}

// The report of `trace` is test/golden/NAME.EXTENSION.
static void check_golden(const char *trace, const char *name, const struct form *form,
			 const char *extension, const struct wanted *options)
{
	char *path = path_of("golden", name, extension);
	char *actual = make_report(trace, form, options);
	size_t size = 0;
	char *expected;
	int line;

	if (getenv("TIDEMARK_ACCEPT")) {
		FILE *file = fopen(test_source_path(path), "wb");

		CHECK(file != NULL);
		fputs(actual, file);
		CHECK_EQ(0, fclose(file));
	}
	expected = read_file(test_source_path(path), &size);
	CHECK(expected != NULL);
	line = first_difference(expected, actual);
	if (line)
		fprintf(stderr, "%s differs from line %d on; this came out:\n%s\n", path, line,
			actual);
	CHECK_EQ(0, line);
	mem_free(expected);
	mem_free(actual);
	mem_free(path);
}

static struct wanted plain(unsigned width)
{
	return (struct wanted){ .report = { .rows_max = 10, .width = width } };
}

TEST(golden_kitchen_for_people)
{
	struct wanted options = plain(100);

	check_golden("kitchen", "kitchen", &as_text, "txt", &options);
}

TEST(golden_kitchen_on_a_narrow_terminal_in_colour_with_all_frames)
{
	struct wanted options = plain(80);

	options.report.colour = true;
	options.report.all_frames = true;
	options.report.rows_max = 2;
	check_golden("kitchen", "kitchen.narrow", &as_text, "txt", &options);
}

TEST(golden_kitchen_for_programs)
{
	struct wanted options = plain(100);

	check_golden("kitchen", "kitchen", &as_json, "json", &options);
	check_golden("kitchen", "kitchen", &as_csv, "csv", &options);
}

TEST(golden_kitchen_through_one_function)
{
	struct wanted options = plain(100);

	selection_words_add(&options.words, SELECTION_FRAME, "^make_");
	selection_words_add(&options.words, SELECTION_FRAME, "^peel_all$");
	selection_words_add(&options.words, SELECTION_NOT_FRAME, "_lid$");
	options.report.bytes_min = 200;
	check_golden("kitchen", "kitchen.frames", &as_text, "txt", &options);
	selection_words_fini(&options.words);
}

TEST(golden_family_of_processes)
{
	struct wanted options = plain(120);

	check_golden("family", "family", &as_text, "txt", &options);
	check_golden("family", "family", &as_json, "json", &options);
}

TEST(golden_family_without_all_but_the_compilers)
{
	struct wanted options = plain(100);

	selection_words_add(&options.words, SELECTION_PROCESS, "cc1");
	options.report.rows_max = 1;
	check_golden("family", "family.cc1", &as_text, "txt", &options);
	selection_words_fini(&options.words);
}

TEST(golden_crowd_says_what_is_not_certain)
{
	struct wanted options = plain(100);

	check_golden("crowd", "crowd", &as_text, "txt", &options);
	check_golden("crowd", "crowd", &as_json, "json", &options);
}

TEST(golden_crowd_of_one_thread)
{
	struct wanted options = plain(100);

	selection_words_add(&options.words, SELECTION_THREAD, "worker");
	check_golden("crowd", "crowd.worker", &as_text, "txt", &options);
	selection_words_fini(&options.words);
}

TEST(golden_nothing_is_a_report_too)
{
	struct wanted options = plain(100);

	check_golden("nothing", "nothing", &as_text, "txt", &options);
	check_golden("nothing", "nothing", &as_json, "json", &options);
	check_golden("nothing", "nothing", &as_csv, "csv", &options);
}
