// Expressions choose stacks by the functions in them.
#include "report/ask/frame_filter.h"
#include "test/unit/assembled.h"

static const char trace[] = "process p\n"
			    "thread t p\n"
			    "frame both 0x100\n"
			    "name both \"inner_inlined\" \"a.c\":1 < \"outer\" \"a.c\":2\n"
			    "frame nameless 0x200\n"
			    "stack s1 malloc_it < parse < main\n"
			    "stack s2 both < load < main\n"
			    "stack s3 nameless\n"
			    "stack s4 \"ns::Parser<int>::next()\" < parse < main\n"
			    "end\n";

// Which of no stack and the four stacks pass: "x" or "-" each, in the order of the text.
static void check_passes(const char *const *wanted, const char *const *unwanted,
			 const char *expected)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct frame_filter *filter = frame_filter_new(reader, names);
	const char *const leaves[] = { NULL, "malloc_it", "inner_inlined", NULL,
				       "ns::Parser<int>::next()" };
	char passes[6] = "-----";
	struct err err = { 0 };

	for (; *wanted; wanted++)
		CHECK(frame_filter_add(filter, *wanted, FRAME_FILTER_WANTED, &err));
	for (; *unwanted; unwanted++)
		CHECK(frame_filter_add(filter, *unwanted, FRAME_FILTER_UNWANTED, &err));
	for (stack_id id = 0; id < reader_stacks_count(reader); id++) {
		struct names_stack stack = names_stack(names, id);
		const char *leaf = stack.count ? stack.lines[0].symbol->function : NULL;
		int at = id == 0 ? 0 : leaf ? -1 : 3;

		for (int i = 1; leaf && i < 5; i++)
			if (leaves[i] && strcmp(leaf, leaves[i]) == 0)
				at = i;
		if (at >= 0 && frame_filter_passes(filter, id))
			passes[at] = 'x';
		// What is known by now answers the same.
		CHECK_EQ(frame_filter_passes(filter, id), frame_filter_passes(filter, id));
	}
	CHECK_STR(expected, passes);
	frame_filter_free(filter);
	names_free(names);
	reader_close(reader);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

TEST(frame_filter_without_expressions_passes_everything)
{
	check_passes(WORDS(), WORDS(), "xxxxx");
}

TEST(frame_filter_finds_leaves_callers_and_inlined_functions)
{
	check_passes(WORDS("^parse$"), WORDS(), "-x--x");
	check_passes(WORDS("inlined"), WORDS(), "--x--");
	check_passes(WORDS("^(outer|malloc_it)$"), WORDS(), "-xx--");
	check_passes(WORDS("Parser<.*>::next"), WORDS(), "----x");
	check_passes(WORDS("nowhere"), WORDS(), "-----");
}

TEST(frame_filter_of_several_expressions_wants_any_and_refuses_any)
{
	check_passes(WORDS("load", "malloc_it"), WORDS(), "-xx--");
	check_passes(WORDS(), WORDS("parse"), "x-xx-");
	check_passes(WORDS("main"), WORDS("malloc", "outer"), "----x");
	check_passes(WORDS(), WORDS("main"), "x--x-");
}

TEST(frame_filter_asks_functions_of_templates_without_their_return_type_too)
{
	static const char of_template[] = "process p\n"
					  "thread t p\n"
					  "stack s1 \"void ns::made<int>(long)\"\n"
					  "end\n";
	static const struct {
		const char *text;
		bool passes;
	} cases[] = { { "^ns::made<", true }, { "^void ns", true }, { "^made", false } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct reader *reader = assembled_open(of_template);
		struct names *names = names_new(reader, NULL);
		struct frame_filter *filter = frame_filter_new(reader, names);
		struct err err = { 0 };

		CHECK(frame_filter_add(filter, cases[i].text, FRAME_FILTER_WANTED, &err));
		CHECK_EQ(cases[i].passes, frame_filter_passes(filter, 1));
		CHECK_EQ(0, frame_filter_bare(filter));
		frame_filter_free(filter);
		names_free(names);
		reader_close(reader);
	}
}

TEST(frame_filter_says_what_is_wrong_with_an_expression)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct frame_filter *filter = frame_filter_new(reader, names);
	struct err err = { 0 };

	CHECK(!frame_filter_add(filter, "a[", FRAME_FILTER_WANTED, &err));
	CHECK_EQ(ERR_USAGE, err.kind);
	CHECK_CONTAINS("'a['", err.text);
	frame_filter_free(filter);
	names_free(names);
	reader_close(reader);
}
