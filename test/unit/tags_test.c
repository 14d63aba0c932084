// Stack tags name stacks as their public documentation says.
#include "base/mem.h"
#include "report/ask/tags.h"
#include "test/unit/assembled.h"

static const char trace[] = "process p\n"
			    "thread t p\n"
			    "module a p 0x1000-0x2000 bias=0x1000 \"/usr/lib/libpng16.so.16\"\n"
			    "module b p 0x3000-0x4000 bias=0x3000 \"/opt/Viewer\"\n"
			    "frame decode a 0x1100\nname decode \"png_decode(int)\"\n"
			    "frame fill a 0x1200\nname fill \"ns::Buffer<int>::fill(char)\"\n"
			    "frame load b 0x3100\nname load load_image\n"
			    "frame main b 0x3200\nname main main\n"
			    "stack s fill < decode < load < main\n"
			    "end\n";

// The tag that the file gives to the stack fill < decode < load < main; NULL: none.
static void check(const char *expected, const char *file)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct names_stack stack = names_stack(names, reader_stacks_count(reader) - 1);
	struct err err = { 0 };
	struct tags *tags = tags_read(file, strlen(file), &err);
	struct str text = { 0 };

	CHECK_STR("", err.text);
	CHECK_EQ(4, stack.count);
	CHECK_EQ(expected != NULL, tags_find(tags, &stack, &text));
	CHECK_STR(expected ? expected : "", str_get(&text));
	str_fini(&text);
	tags_free(tags);
	names_free(names);
	reader_close(reader);
}

#define FILE_OF(inside) "<?xml version=\"1.0\"?><Tag Name=\"\">" inside "</Tag>"
#define TAG(name, rest, module, method)                                      \
	"<Tag Name=\"" name "\" " rest "><Entrypoint Module=\"" module "\" " \
	"Method=\"" method "\"/></Tag>"

TEST(tags_the_innermost_frame_decides)
{
	check("Decode",
	      FILE_OF(TAG("Load", "", "*", "load_image") TAG("Decode", "", "*", "png_*")));
	check("Load", FILE_OF(TAG("Load", "", "Viewer", "load_image")));
	check(NULL, FILE_OF(TAG("Save", "", "*", "save*")));
	check(NULL, FILE_OF(""));
}

TEST(tags_a_higher_priority_wins)
{
	check("Load", FILE_OF(TAG("Load", "Priority=\"10\"", "*", "load_image")
				      TAG("Decode", "Priority=\"9\"", "*", "png_*")));
	check("Decode", FILE_OF(TAG("Load", "Priority=\"-1\"", "*", "load_image")
					TAG("Decode", "", "*", "png_*")));
}

TEST(tags_match_modules_and_methods_without_regard_to_case)
{
	check("x", FILE_OF(TAG("x", "", "LIBPNG*.so*", "PNG_DECODE")));
	check("x", FILE_OF(TAG("x", "", "viewer", "*")));
	check("x", FILE_OF(TAG("x", "", "*png*", "ns::Buffer*::fill")));
	check("x", FILE_OF("<Tag Name=\"x\"><Entrypoint Module=\"libpng*\"/></Tag>"));
	check("x", FILE_OF("<Tag Name=\"x\"><Entrypoint Method=\"main\"/></Tag>"));
	check(NULL, FILE_OF(TAG("x", "", "libpng", "*")));
	check(NULL, FILE_OF(TAG("x", "", "*", "png_decod")));
	check(NULL, FILE_OF(TAG("x", "", "*x*", "*a*b*")));
}

TEST(tags_of_one_frame_are_taken_in_the_order_of_the_file)
{
	check("first", FILE_OF(TAG("first", "", "*", "ns::*") TAG("second", "", "*", "*fill")));
}

TEST(tags_inside_tags_have_all_their_names)
{
	check("Images\\Png",
	      FILE_OF("<Tag Name=\"Images\">" TAG("Png", "", "libpng*", "*") "</Tag>"));
}

TEST(tags_hints_name_who_is_called_or_calls)
{
#define HINT(rest)                                            \
	FILE_OF("<HintTag Name=\"RPC\" " rest "><Entrypoint " \
		"Module=\"*\" Method=\"png_decode\"/></HintTag>")
	check("RPC\\libpng16.so.16", HINT("HintOperator=\"Callee\""));
	check("RPC\\Viewer", HINT("HintOperator=\"Caller\""));
	check("RPC\\Viewer\\load_image", HINT("HintOperator=\"caller\" OnlyShowModule=\"false\""));
	check("RPC\\libpng16.so.16\\ns::Buffer<int>::fill",
	      HINT("HintOperator=\"Callee\" OnlyShowModule=\"False\""));
}

static void check_refused(const char *because, const char *file)
{
	struct err err = { 0 };

	CHECK(!tags_read(file, strlen(file), &err));
	CHECK_EQ(ERR_FORMAT, err.kind);
	CHECK_CONTAINS(because, err.text);
}

TEST(tags_that_are_none_are_refused_with_their_place)
{
	char deep[4096] = "";

	check_refused("line 1, column", "");
	check_refused("line 2, column", "<Tag Name=\"\">\n<Tag>");
	check_refused("needs a Name", "<Tag Name=\"\"><Tag/></Tag>");
	check_refused("not a file of stack tags", "<WpaProfile/>");
	check_refused("not a file of stack tags", "<Entrypoint Module=\"x\"/>");
	check_refused("whole number", FILE_OF("<Tag Name=\"x\" Priority=\"high\"/>"));
	check_refused("Caller or Callee", FILE_OF("<HintTag Name=\"x\"/>"));
	check_refused("document type", "<!DOCTYPE Tag [<!ENTITY a \"aaaa\">]><Tag Name=\"&a;\"/>");
	check_refused("line 1", "<Tag Name=\"\">\xff\xfe</Tag>");
	for (int i = 0; i < 70; i++)
		strcat(deep, "<Tag Name=\"x\">");
	check_refused("too deep", deep);
}
