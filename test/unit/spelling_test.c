// Types as GCC and clang write them in DWARF, and as the demangler writes them.
#include "symbols/spelling.h"
#include "test/test.h"

#include <string.h>

static const struct {
	const char *written, *spelled;
} types[] = {
	{ "", "" },
	{ "int", "int" },
	{ "long unsigned int", "unsigned long" },
	{ "unsigned long", "unsigned long" },
	{ "const char*", "char const*" },
	{ "const char *", "char const*" },
	{ "const char *const *", "char const* const*" },
	{ "const volatile long int&", "long const volatile&" },
	{ "constant", "constant" },
	{ "volatile constant *", "constant volatile*" },
	{ "pair<const long unsigned int, std::vector<char *>>",
	  "pair<unsigned long const, std::vector<char*> >" },
	{ "a<b<c<d> >, (e)1, -1>", "a<b<c<d> >, (e)1, -1>" },
	{ "int (*)(const char *, long int)", "int (*)(char const*, long)" },
	{ "int (&)[3]", "int (&) [3]" },
	{ "const char [4]", "char const [4]" },
	{ "void (ns::s::*)(int) const", "void (ns::s::*)(int) const" },
	{ "int (long int)", "int (long)" },
	{ "(anonymous namespace)::h *", "(anonymous namespace)::h*" },
	{ "{anonymous}::h", "(anonymous namespace)::h" },
	{ "f(const char*)::local", "f(char const*)::local" },
	{ "main(int, char**)::<lambda(int, const s&)>",
	  "main(int, char**)::{lambda(int, s const&)}" },
	{ "<int, const s *>", "<int, s const*>" },
	// What is cut, or closes what was never opened, is no harm.
	{ "a<b<const c", "a<b<c const" },
	{ "a>)]", "a>)]" },
	{ "a<", "a<" },
	{ ")(", ")(" },
};

TEST(spelling_writes_types_as_the_demangler_does)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct str out = { 0 };
		const char *text =
			(const char *)test_guarded_copy(types[i].written, strlen(types[i].written));

		spelling_add_type(&out, text, strlen(types[i].written));
		CHECK_STR(types[i].spelled, str_get(&out));
		str_fini(&out);
	}
}

TEST(spelling_finds_the_arguments_of_a_name)
{
	const char *inside, *argument, *at;
	size_t length, argument_length;

	CHECK(spelling_arguments("a<b>::c<int, d<e, f> >", &inside, &length));
	at = inside;
	CHECK(spelling_next(&at, inside + length, &argument, &argument_length));
	CHECK_EQ(3, argument_length);
	CHECK(memcmp(argument, "int", 3) == 0);
	CHECK(spelling_next(&at, inside + length, &argument, &argument_length));
	CHECK_EQ(7, argument_length);
	CHECK(memcmp(argument, "d<e, f>", 7) == 0);
	CHECK(!spelling_next(&at, inside + length, &argument, &argument_length));
	CHECK(spelling_arguments("tuple<>", &inside, &length) && length == 0);
	CHECK(!spelling_arguments("operator<", &inside, &length));
	CHECK(!spelling_arguments("a<b>::c", &inside, &length));
	CHECK(!spelling_arguments("a->", &inside, &length));
	CHECK(!spelling_arguments("", &inside, &length));
}

TEST(spelling_ends_on_texts_that_nest_deep)
{
	char text[4096];
	struct str out = { 0 };

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 2 ? '<' : 'a';
	spelling_add_type(&out, text, sizeof text);
	CHECK(out.length < 2 * sizeof text);
	str_fini(&out);
}
