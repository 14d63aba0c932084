// What is printed stays within its columns and carries no foreign control characters.
#include "report/table/paper.h"
#include "test/test.h"

static struct str text;
static struct sink sink;

static struct paper paper_on(unsigned width, bool colour)
{
	str_fini(&text);
	sink = sink_to_str(&text);
	return (struct paper){ .sink = &sink, .width = width, .colour = colour };
}

TEST(paper_without_colour_is_the_bare_text)
{
	struct paper paper = paper_on(80, false);

	paper_text(&paper, PAPER_BOLD, "one\n");
	paper_format(&paper, PAPER_WARNING, "%d %s\n", 2, "two");
	CHECK_STR("one\n2 two\n", str_get(&text));
}

TEST(paper_ends_a_style_before_the_line_ends)
{
	struct paper paper = paper_on(80, true);

	paper_text(&paper, PAPER_BOLD, "one\n\ntwo");
	paper_text(&paper, PAPER_PLAIN, "!\n");
	CHECK_STR("\033[1mone\033[0m\n\n\033[1mtwo\033[0m!\n", str_get(&text));
}

TEST(paper_fields_are_padded_by_columns_not_by_bytes)
{
	struct paper paper = paper_on(80, false);

	paper_field(&paper, PAPER_PLAIN, "né", 4, false);
	paper_field(&paper, PAPER_PLAIN, "né", 4, true);
	paper_field(&paper, PAPER_PLAIN, "longer", 4, true);
	CHECK_STR("né    nélonger", str_get(&text));
}

TEST(paper_paragraphs_break_at_blanks_and_hang)
{
	struct paper paper = paper_on(20, false);

	paper_paragraph(&paper, PAPER_PLAIN, "note", "one two three four five");
	CHECK_STR("note: one two three\n      four five\n", str_get(&text));
	paper = paper_on(20, false);
	paper_paragraph(&paper, PAPER_PLAIN, "note", "averyverylongwordthatdoesnotfit x");
	CHECK_STR("note: averyverylongwordthatdoesnotfit\n      x\n", str_get(&text));
}

TEST(paper_makes_foreign_text_harmless_and_short)
{
	struct paper paper = paper_on(80, false);

	paper_foreign(&paper, PAPER_PLAIN,
		      "a\033[2Jb\xc2\x9b"
		      "c",
		      20);
	CHECK_STR("a?[2Jb?c", str_get(&text));
	paper = paper_on(80, false);
	paper_foreign(&paper, PAPER_PLAIN, "sh -c a\n\tb\r\n", 40);
	CHECK_STR("sh -c a  b  ", str_get(&text));
	paper = paper_on(80, false);
	paper_foreign(&paper, PAPER_PLAIN, "twelve bytes", 6);
	CHECK_STR("twelv…", str_get(&text));
	paper = paper_on(80, false);
	paper_foreign(&paper, PAPER_PLAIN, "twelve", 6);
	CHECK_STR("twelve", str_get(&text));
	str_fini(&text);
}
