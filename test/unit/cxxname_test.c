// Names are read as people read them.
#include "report/ask/cxxname.h"
#include "test/test.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text, *base;
} bases[] = {
	{ "", "" },
	{ "main", "main" },
	{ "main(int, char**)", "main" },
	{ "operator new(unsigned long)", "operator new" },
	{ "operator new[](unsigned long, std::align_val_t)", "operator new[]" },
	{ "Pool::operator new(unsigned long)", "Pool::operator new" },
	{ "void ns::f<int>(long) const", "ns::f<int>" },
	{ "std::vector<int, std::allocator<int> >& g<int>(int)", "g<int>" },
	{ "unsigned long const* h<char>()", "h<char>" },
	{ "(anonymous namespace)::Thing::run()", "(anonymous namespace)::Thing::run" },
	{ "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()" },
	{ "outer(int)::Local::method(long)", "outer(int)::Local::method" },
	{ "outer(int) const::{lambda()#2}::operator()() const",
	  "outer(int) const::{lambda()#2}::operator()" },
	{ "bool operator< <int>(A<int> const&, A<int> const&)", "operator< <int>" },
	{ "std::ostream& operator<<(std::ostream&, X const&)", "operator<<" },
	{ "X::operator->() const", "X::operator->" },
	{ "X::operator bool() const", "X::operator bool" },
	{ "work(int) [clone .cold]", "work" },
	{ "work [clone .part.0]", "work" },
	{ "alloc::vec::Vec<T,A>::push", "alloc::vec::Vec<T,A>::push" },
	{ "<alloc::string::String as core::clone::Clone>::clone",
	  "<alloc::string::String as core::clone::Clone>::clone" },
	{ "core::ops::function::FnOnce::call_once{{vtable.shim}}",
	  "core::ops::function::FnOnce::call_once{{vtable.shim}}" },
	{ "decltype (fp.f()) call<F>(F)", "call<F>" },
};

TEST(cxxname_finds_the_name_between_return_type_and_parameters)
{
	for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
		struct str base = { 0 };
		size_t length;
		const char *start = cxxname_base(bases[i].text, &length);

		str_add_bytes(&base, start, length);
		CHECK_STR(bases[i].base, str_get(&base));
		str_fini(&base);
	}
}

static const char bundle_reader[] =
	"void spice::Shelf<spice::Jar, std::less<spice::Jar>, std::allocator<spice::Jar> >::put("
	"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)";

static const struct {
	const char *text;
	size_t width;
	const char *shortened;
} shortenings[] = {
	{ "main", 8, "main" },
	{ "std::vector<std::vector<int> >::f()", 80, "std::vector<std::vector<int>>::f()" },
	{ bundle_reader, 80, "void spice::Shelf<spice::Jar>::put(std::string const&)" },
	{ bundle_reader, 50, "spice::Shelf<spice::Jar>::put(…)" },
	{ bundle_reader, 31, "spice::Shelf<…>::put(…)" },
	{ bundle_reader, 21, "…::Shelf<…>::put(…)" },
	{ bundle_reader, 17, "…::put(…)" },
	{ bundle_reader, 8, "put(…)" },
	{ "serve(int)::{lambda(char, long)#1}::operator()(char, long) const", 40,
	  "serve(…)::{lambda#1}" },
	{ "serve(int)::{lambda(int)#2}::operator()<int>(int) const", 16, "…::{lambda#2}" },
	{ "serve(int)::local::method(char, long)", 27, "serve(…)::local::method(…)" },
	{ "a_rather_long_c_function", 10, "a_rather_…" },
	{ "a_rather_long_c_function", 0, "a_rathe…" },
	{ "std::map<int, X, std::less<int>, std::allocator<std::pair<int const, X> > >::at(int)",
	  80, "std::map<int, X>::at(int)" },
	{ "evil\033[31mred\n\x7f\xc2\x9b", 40, "evil?[31mred???" },
	{ "gr\xfc\xdf\x65 \xc3\xa9", 40, "gr\xef\xbf\xbd\xef\xbf\xbd\x65 \xc3\xa9" },
	{ "Größe", 8, "Größe" },
};

TEST(cxxname_shortens_in_the_order_of_what_is_missed_least)
{
	for (size_t i = 0; i < sizeof shortenings / sizeof *shortenings; i++) {
		struct str out = { 0 };

		cxxname_shorten(shortenings[i].text, shortenings[i].width, &out);
		CHECK_STR(shortenings[i].shortened, str_get(&out));
		str_fini(&out);
	}
}

TEST(cxxname_leaves_out_return_types_of_templates_alone)
{
	CHECK_STR("ns::f<int>(long) const", cxxname_scoped("void ns::f<int>(long) const"));
	CHECK_STR("ns::f(long)", cxxname_scoped("ns::f(long)"));
	CHECK_STR("operator new(unsigned long)", cxxname_scoped("operator new(unsigned long)"));
	CHECK_STR("ns::s::operator bool() const", cxxname_scoped("ns::s::operator bool() const"));
	CHECK_STR("main", cxxname_scoped("main"));
	CHECK_STR("", cxxname_scoped(""));
}

TEST(cxxname_never_exceeds_the_width_and_reads_no_byte_too_far)
{
	static const char alphabet[] = "ab:<>(){}[] ,~*&operator new()->…";

	srand(99);
	for (int round = 0; round < 20000; round++) {
		char text[64];
		size_t length = (size_t)rand() % (sizeof text - 1);
		size_t width = 8 + (size_t)rand() % 30;
		struct str out = { 0 };
		const char *copy;

		for (size_t i = 0; i < length; i++)
			text[i] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
		text[length] = '\0';
		copy = (const char *)test_guarded_copy(text, length + 1);
		cxxname_shorten(copy, width, &out);
		CHECK(cxxname_columns(str_get(&out)) <= width);
		str_fini(&out);
	}
}
