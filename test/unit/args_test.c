// What cli/args.h promises about command lines.
#include "test/test.h"

#include "base/str.h"
#include "cli/args.h"

#include <string.h>
#include <unistd.h>

enum { OUTPUT = 1, FORCE, LIMIT, FORMAT, SIZE };

static const struct option_row rows[] = {
	{ OUTPUT, 'o', "output", "FILE", "write to FILE" },
	{ FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ LIMIT, 'n', "limit", "N", "at most N rows" },
	{ FORMAT, 0, "format", "text|json",
	  "how it looks: a help that is longer than one line is broken" },
	{ 0 },
};

static const struct option_row shared[] = {
	{ SIZE, 0, "min-bytes", "SIZE", "rows of at least SIZE" },
	{ 0 },
};

static const struct command command = {
	.name = "sample",
	.brief = "do something",
	.usage = "FILE [options]",
	.options = rows,
	.shared = shared,
	.shared_title = "Filters",
	.examples = "  tidemark sample x\n",
};

// What is printed to descriptor `fd` while `body` runs.
static char *printed;
static int printed_copy, printed_fd;
static FILE *printed_file;

static void capture_begin(FILE *stream)
{
	fflush(stream);
	printed_fd = fileno(stream);
	printed_copy = dup(printed_fd);
	printed_file = tmpfile();
	dup2(fileno(printed_file), printed_fd);
}

static const char *capture_end(FILE *stream)
{
	static char text[8192];
	ssize_t got;

	fflush(stream);
	dup2(printed_copy, printed_fd);
	close(printed_copy);
	got = pread(fileno(printed_file), text, sizeof(text) - 1, 0);
	fclose(printed_file);
	text[got < 0 ? 0 : got] = '\0';
	printed = text;
	return text;
}

// Words separated by blanks, parsed; "output=x force operand=y" says what was found.
static const char *parse(const char *line, bool stops)
{
	static struct str found;
	static char copy[512];
	char *argv[32];
	int argc = 0;
	struct args args;
	int id;

	strcpy(copy, line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	str_clear(&found);
	str_add(&found, "");
	args_init(&args, &command, argc, argv);
	args.stops_at_operand = stops;
	while ((id = args_next(&args)) != ARGS_END) {
		if (id == ARGS_EXIT) {
			str_format(&found, "exit=%d ", args.exit_code);
			break;
		}
		if (id == ARGS_OPERAND)
			str_format(&found, "operand=%s ", args.value);
		else if (args.value)
			str_format(&found, "%s=%s ", args.row->name, args.value);
		else
			str_format(&found, "%s ", args.row->name);
	}
	for (int i = args.at; i < argc && id == ARGS_END; i++)
		str_format(&found, "rest=%s ", argv[i]);
	return str_get(&found);
}

static const char *mistake(const char *line)
{
	const char *found;

	capture_begin(stderr);
	found = parse(line, false);
	capture_end(stderr);
	CHECK_CONTAINS("exit=2 ", found);
	return printed;
}

TEST(args_takes_every_way_to_write_an_option)
{
	CHECK_STR("output=a ", parse("-o a", false));
	CHECK_STR("output=a ", parse("-oa", false));
	CHECK_STR("output=a ", parse("--output a", false));
	CHECK_STR("output=a ", parse("--output=a", false));
	CHECK_STR("output= ", parse("--output=", false));
	CHECK_STR("force limit=3 ", parse("-fn3", false));
	CHECK_STR("force output=n ", parse("-fo n", false));
	CHECK_STR("min-bytes=64K ", parse("--min-bytes 64K", false));
}

TEST(args_takes_a_unique_beginning_of_a_name)
{
	CHECK_STR("output=a ", parse("--out a", false));
	CHECK_STR("limit=4 ", parse("--l=4", false));
	CHECK_CONTAINS("--fo could be several options", mistake("--fo"));
}

TEST(args_lets_options_stand_after_operands)
{
	CHECK_STR("operand=x force operand=y ", parse("x -f y", false));
	CHECK_STR("operand=- ", parse("-", false));
}

TEST(args_ends_options_at_two_dashes)
{
	CHECK_STR("force operand=-f operand=--limit ", parse("-f -- -f --limit", false));
}

TEST(args_stops_at_the_first_operand_when_asked)
{
	CHECK_STR("force rest=prog rest=-f rest=--limit ", parse("-f prog -f --limit", true));
	CHECK_STR("force rest=-prog rest=-f ", parse("-f -- -prog -f", true));
	CHECK_STR("force ", parse("-f --", true));
}

TEST(args_tells_mistakes_with_the_nearest_option)
{
	CHECK_CONTAINS("tidemark sample: unknown option --forse; did you mean --force?",
		       mistake("--forse"));
	CHECK_CONTAINS("tidemark sample --help", mistake("--forse"));
	CHECK_CONTAINS("unknown option -z", mistake("-z"));
	CHECK_CONTAINS("unknown option -z", mistake("-fz"));
	CHECK_CONTAINS("-o needs FILE", mistake("-o"));
	CHECK_CONTAINS("--output needs FILE", mistake("--output"));
	CHECK_CONTAINS("--force takes no argument", mistake("--force=1"));
	CHECK_CONTAINS("unknown option --", mistake("--=x"));
}

TEST(args_help_names_every_option_once)
{
	capture_begin(stdout);
	CHECK_STR("exit=0 ", parse("--help", false));
	capture_end(stdout);
	CHECK(strncmp(printed, "usage: tidemark sample FILE [options]\n", 38) == 0);
	CHECK_CONTAINS("  -o, --output=FILE", printed);
	CHECK_CONTAINS("  -f, --force ", printed);
	CHECK_CONTAINS("      --format=text|json", printed);
	CHECK_CONTAINS("\nFilters\n      --min-bytes=SIZE", printed);
	CHECK_CONTAINS("  -h, --help", printed);
	CHECK_CONTAINS("Exit codes\n  0 answered", printed);
}

TEST(args_help_wraps_long_lines)
{
	char line[200];
	const char *at;

	capture_begin(stdout);
	parse("--help", false);
	capture_end(stdout);
	CHECK_CONTAINS("a help that is longer than one line", printed);
	for (at = printed; *at != '\0'; at += strcspn(at, "\n") + 1) {
		size_t length = strcspn(at, "\n");

		CHECK(length <= 79 && length < sizeof(line));
		if (at[length] == '\0')
			break;
	}
}

TEST(args_converts_numbers_sizes_and_words)
{
	static const char *const words[] = { "text", "json", NULL };
	char *argv[] = { (char *)"-n12", (char *)"--min-bytes=1.5K", (char *)"--format=json",
			 (char *)"-nx",  (char *)"--min-bytes=-1",   (char *)"--format=xml" };
	struct args args;
	uint64_t number = 0;
	int word = 0;

	args_init(&args, &command, 6, argv);
	CHECK_EQ(LIMIT, args_next(&args));
	CHECK(args_count(&args, &number));
	CHECK_EQ(12, number);
	CHECK_EQ(SIZE, args_next(&args));
	CHECK(args_bytes(&args, &number));
	CHECK_EQ(1536, number);
	CHECK_EQ(FORMAT, args_next(&args));
	CHECK(args_word(&args, words, &word));
	CHECK_EQ(1, word);
	capture_begin(stderr);
	CHECK_EQ(LIMIT, args_next(&args));
	CHECK(!args_count(&args, &number));
	CHECK_EQ(SIZE, args_next(&args));
	CHECK(!args_bytes(&args, &number));
	CHECK_EQ(FORMAT, args_next(&args));
	CHECK(!args_word(&args, words, &word));
	capture_end(stderr);
	CHECK_EQ(EXIT_USAGE, args.exit_code);
	CHECK_CONTAINS("--limit needs a whole number, not 'x'", printed);
	CHECK_CONTAINS("--format is text or json, not 'xml'", printed);
}

TEST(args_takes_one_operand_and_misses_none)
{
	const char *operand = NULL;
	struct args args;

	args_init(&args, &command, 0, NULL);
	args.value = "a";
	CHECK(args_operand(&args, &operand));
	CHECK_STR("a", operand);
	capture_begin(stderr);
	args.value = "b";
	CHECK(!args_operand(&args, &operand));
	CHECK(args_need(&args, operand, "a FILE"));
	CHECK(!args_need(&args, NULL, "a FILE"));
	capture_end(stderr);
	CHECK_CONTAINS("unexpected 'b' after 'a'", printed);
	CHECK_CONTAINS("needs a FILE", printed);
}

TEST(an_option_whose_row_names_a_member_sets_it)
{
	struct wish {
		bool force, rows_are_wanted;
		const char *output, *path;
		uint64_t count, bytes;
	} wish = { .rows_are_wanted = true };
	const struct option_row setting[] = {
		{ ARGS_FLAG(wish, force), 'f', "force", NULL, "" },
		{ ARGS_CLEAR(wish, rows_are_wanted), 0, "no-rows", NULL, "" },
		{ ARGS_TEXT(wish, output), 'o', "output", "FILE", "" },
		{ ARGS_COUNT(wish, count), 'n', "count", "N", "" },
		{ ARGS_BYTES(wish, bytes), 0, "bytes", "SIZE", "" },
		{ FORCE, 0, "asked", NULL, "" },
		{ 0 },
	};
	const struct command sets = { .name = "sets", .options = setting };
	char *words[] = { "-fo",     "x",       "here", "--no-rows", "-n7",
			  "--asked", "--bytes", "2K",   "there" };
	struct args args;

	args_init(&args, &sets, 9, words);
	args.into = &wish;
	args.operand = &wish.path;
	CHECK_EQ(FORCE, args_next(&args));
	CHECK(wish.force && !wish.rows_are_wanted && wish.count == 7 && wish.bytes == 0);
	CHECK_STR("x", wish.output);
	CHECK_STR("here", wish.path);
	capture_begin(stderr);
	CHECK_EQ(ARGS_EXIT, args_next(&args));
	capture_end(stderr);
	CHECK_EQ(2048, wish.bytes);
	CHECK_EQ(EXIT_USAGE, args.exit_code);
}

TEST(args_fail_gives_each_kind_its_exit_code)
{
	static const struct {
		enum err_kind kind;
		int code;
	} kinds[] = {
		{ ERR_USAGE, EXIT_USAGE },
		{ ERR_IO, EXIT_UNREADABLE },
		{ ERR_FORMAT, EXIT_UNREADABLE },
		{ ERR_LIMIT, EXIT_OVER_BUDGET },
	};

	for (size_t i = 0; i < 4; i++) {
		struct err err = { 0 };
		int code;

		err_set(&err, kinds[i].kind, "because %d", 7);
		capture_begin(stderr);
		code = args_fail(&command, &err);
		CHECK_STR("tidemark sample: because 7\n", capture_end(stderr));
		CHECK_EQ(kinds[i].code, code);
	}
}
