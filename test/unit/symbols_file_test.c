// Names by (file, offset): every address of programs in many forms, against addr2line.
#include "symbols_oracle.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// A file as it is now, with a search that looks nowhere else.
struct fixture {
	const char *path;
	struct object *object; // for its build-id
	struct remarks remarks;
	struct search search;
	struct symbols_file_identity identity;
	struct symbols_file *file;
};

static void fixture_open(struct fixture *fixture, const char *path)
{
	struct err err;
	struct stat status;

	*fixture = (struct fixture){ .path = path };
	fixture->object = object_open(path, &err);
	CHECK(fixture->object != NULL);
	CHECK_EQ(0, stat(path, &status));
	fixture->search.remarks = &fixture->remarks;
	fixture->identity = (struct symbols_file_identity){
		.path = path,
		.build_id = fixture->object->build_id,
		.build_id_length = fixture->object->build_id_length,
		.size_bytes = (uint64_t)status.st_size,
		.mtime_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 +
			    (uint64_t)status.st_mtim.tv_nsec,
	};
	fixture->file = symbols_file_open(&fixture->identity, &fixture->search);
}

// Open again, with what was recorded before and what is on the disk now.
static void fixture_again(struct fixture *fixture)
{
	symbols_file_close(fixture->file);
	remarks_fini(&fixture->remarks);
	fixture->file = symbols_file_open(&fixture->identity, &fixture->search);
}

static void fixture_close(struct fixture *fixture)
{
	symbols_file_close(fixture->file);
	remarks_fini(&fixture->remarks);
	object_close(fixture->object);
}

static const char *name_at(struct fixture *fixture, uint64_t offset)
{
	struct places places = { 0 };
	const char *name;

	symbols_file_find(fixture->file, offset, &places);
	CHECK(places.count > 0);
	name = places.items[places.count - 1].function;
	places_fini(&places);
	return name;
}

static bool has_line_at(struct fixture *fixture, uint64_t offset)
{
	struct places places = { 0 };
	bool has;

	symbols_file_find(fixture->file, offset, &places);
	has = places.items[0].file && places.items[0].line > 0;
	places_fini(&places);
	return has;
}

// The offset of a symbol, by nm.
static uint64_t offset_of(const char *path, const char *symbol)
{
	const char *out = test_temp_path("offset");
	unsigned long long offset = 0;
	FILE *file;

	oracle_run("nm %s | awk '$3 == \"%s\" { print $1 }' > %s", path, symbol, out);
	file = fopen(out, "r");
	CHECK(file != NULL && fscanf(file, "%llx", &offset) == 1);
	fclose(file);
	return offset;
}

static const char *build(const char *compiler, const char *flags, const char *source)
{
	const char *path = test_temp_path("program");

	// A new file each time, so that no mapping of the last one changes under us.
	unlink(path);
	oracle_run("%s -w %s %s -o %s", compiler, flags, test_source_path(source), path);
	return path;
}

// Every byte of .text.
static void compare_every_byte(const char *compiler, const char *flags, const char *source)
{
	const char *path = build(compiler, flags, source);
	struct oracle oracle = { 0 };
	struct fixture fixture;
	uint64_t start, end;

	fixture_open(&fixture, path);
	oracle_text(path, &start, &end);
	oracle_compare(&oracle, fixture.file, path, path, start, end, 1);
	printf("%s %s: %zu same, %zu gap, %zu alias, %zu inner, %zu whole, "
	       "%zu plain, %zu part, %zu file, %zu wrong\n",
	       compiler, flags, oracle.same, oracle.gap, oracle.alias, oracle.inner, oracle.whole,
	       oracle.plain, oracle.part, oracle.file, oracle.wrong);
	CHECK_EQ(0, oracle.wrong);
	CHECK(oracle.same > 9 * (oracle.gap + oracle.inner + oracle.plain + oracle.part));
	fixture_close(&fixture);
	oracle_fini(&oracle);
}

static const char inlined[] = "test/programs/symbols_inlined.c";
static const char scopes[] = "test/programs/symbols_scopes.cpp";
static const char templates[] = "test/programs/symbols_templates.cpp";

TEST(every_address_of_inlined_c_is_named_as_addr2line_names_it)
{
	compare_every_byte("gcc", "-O2 -g", inlined);
	compare_every_byte("gcc", "-O0 -g", inlined);
	compare_every_byte("gcc", "-O3 -g -gdwarf-4", inlined);
	compare_every_byte("gcc", "-O2 -g -gdwarf-3", inlined);
	compare_every_byte("gcc", "-O2 -g -ffunction-sections -Wl,--gc-sections", inlined);
}

TEST(every_address_of_inlined_c_is_named_without_debug_information_too)
{
	compare_every_byte("gcc", "-O2 -g0", inlined);
	compare_every_byte("gcc", "-O2 -g1", inlined);
}

TEST(every_address_of_templates_is_named_as_addr2line_names_it)
{
	compare_every_byte("g++", "-O2 -g", templates);
	compare_every_byte("g++", "-O1 -g -gdwarf-4", templates);
}

TEST(every_address_of_templates_is_named_in_compressed_and_linked_forms)
{
	compare_every_byte("g++", "-O2 -g -gz", templates);
	compare_every_byte("g++", "-O2 -g -flto", templates);
	compare_every_byte("g++", "-O2 -g0", templates);
	compare_every_byte("gcc", "-O2 -g -no-pie", inlined);
}

#define TEXT "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

// Functions of symbols_scopes.cpp that are in other names there: each has a symbol where it has
// code of its own.
static const char *const in_scopes[] = {
	"app::(anonymous namespace)::query::get(unsigned long, char const*, int (*)(int)) const",
	"app::(anonymous namespace)::nameless(" TEXT " const&, char**, "
	"app::(anonymous namespace)::query*, app::(anonymous namespace)::query&&, "
	"std::vector<char const*, std::allocator<char const*> > const&)",
	"app::(anonymous namespace)::fixed<char const*, 3, 4ul>(char const**, std::ostream&)",
	"app::types(long, bool, signed char, unsigned char, short, long long, double, "
	"int volatile*, int*)",
	"app::values(app::mode, app::switched<(app::mode)1, true>, ...)",
	"handle(int)::{lambda(int)#1}::operator()(int) const",
	"handle(int)::{lambda(" TEXT " const&)#2}::operator()(" TEXT " const&) const",
	"handle(int)::{lambda(int)#3}::operator()(int) const",
	"handle(int)::local::method(int)",
	"app::(anonymous namespace)::query::once() volatile &",
	"app::(anonymous namespace)::query::operator app::(anonymous namespace)::query*() const",
	"app::arrays(int (&) [3], char const (*) [2][4], char* const*, int (**)(int), "
	"void (* const*)(char*), short const (&) [1])",
	"app::members(int app::(anonymous namespace)::query::*, "
	"int (app::(anonymous namespace)::query::*)(long) const &)",
	"app::parts(app::part<int, void, true>*, app::part<long*, char, true>*, "
	"std::pair<unsigned long const, app::part<char const*, void, true> >*, "
	"std::tuple<int, long>*, std::tuple<>*)",
	"app::numbers(float __vector(4)*, app::number<(unsigned char)200>, double _Complex*)",
	"app::store::make<long>(int)::{lambda()#1}::operator()() const",
	"main::{lambda(int)#1}::operator()(int) const",
	"app::store::open(int)::{lambda()#1}::operator()() const",
	"outer(outside*)",
};

enum { IN_SCOPES = sizeof in_scopes / sizeof *in_scopes };

// Which of them are there? A return type may be before the name, and a part of the compiler's
// after it.
static void check_scopes(const char *flags, const char *then, bool inlined_only)
{
	const char *path = build("g++", flags, scopes);
	bool found[IN_SCOPES] = { false };
	struct fixture fixture;
	uint64_t start, end;

	if (then)
		oracle_run("%s %s", then, path);
	fixture_open(&fixture, path);
	oracle_text(path, &start, &end);
	for (uint64_t at = start; at < end; at++) {
		struct places places = { 0 };

		symbols_file_find(fixture.file, at, &places);
		for (size_t i = 0; i + inlined_only < places.count; i++) {
			const char *name = places.items[i].function;
			char *shown = name ? demangle(name) : NULL;

			for (size_t k = 0; k < IN_SCOPES; k++)
				if (name && strstr(shown ? shown : name, in_scopes[k]))
					found[k] = true;
			mem_free(shown);
		}
		places_fini(&places);
	}
	for (size_t k = 0; k < IN_SCOPES; k++) {
		if (!found[k])
			printf("%s: there is no %s\n", flags, in_scopes[k]);
		CHECK(found[k]);
	}
	fixture_close(&fixture);
}

TEST(a_function_has_one_name_whether_inlined_or_not)
{
	check_scopes("-std=c++20 -O2 -g -DAPART", NULL, false);
	check_scopes("-std=c++20 -O2 -g", NULL, true);
}

TEST(names_are_whole_in_every_form_of_dwarf)
{
	check_scopes("-std=c++20 -O2 -g -gdwarf-4", NULL, true);
	check_scopes("-std=c++20 -O2 -g -gdwarf-5 -fdebug-types-section", NULL, true);
	check_scopes("-std=c++20 -O2 -g -gsplit-dwarf", NULL, true);
	check_scopes("-std=c++20 -O2 -g -flto", NULL, true);
	check_scopes("-std=c++20 -O2 -g", "sh -c '! command -v dwz || dwz $0' > /dev/null", true);
}

// clang calls them $_0, $_1 and so on as they come in the file.
TEST(lambdas_have_the_function_that_they_are_in_and_what_they_are_called_with)
{
	static const char *const compilers[] = { "g++", "clang++" };
	// The ABI has no name for what a file's lambda is in; GCC takes the variable's.
	static const char *const of_file[] = { "of_file::{lambda(int)#1}::operator()(int) const",
					       "{lambda(int)#1}::operator()(int) const" };
	static const char *const names[] = {
		"main::{lambda(int)#1}::operator()(int) const",
		"main::{lambda(int)#2}::operator()(int) const",
		"main::{lambda(int)#2}::operator()(int) const::{lambda(char)#1}::operator()(char) "
		"const",
	};

	for (size_t k = 0; k < sizeof compilers / sizeof *compilers; k++) {
		bool found[sizeof names / sizeof *names] = { false }, found_of_file = false;
		struct fixture fixture;
		uint64_t start, end;

		if (k == 1 && access("/usr/bin/clang++", X_OK) != 0)
			continue;
		fixture_open(&fixture,
			     build(compilers[k], "-O0 -g", "test/programs/symbols_lambdas.cpp"));
		oracle_text(fixture.path, &start, &end);
		for (uint64_t at = start; at < end; at++) {
			struct places places = { 0 };
			const char *name;
			char *shown;

			symbols_file_find(fixture.file, at, &places);
			name = places.items[0].function;
			shown = name ? demangle(name) : NULL;
			name = shown ? shown : name;
			for (size_t i = 0; i < sizeof names / sizeof *names; i++)
				found[i] |= name && strcmp(name, names[i]) == 0;
			found_of_file |= name && strcmp(name, of_file[k]) == 0;
			CHECK(!name || !strstr(name, "$_"));
			mem_free(shown);
			places_fini(&places);
		}
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (!found[i])
				printf("%s: there is no %s\n", compilers[k], names[i]);
			CHECK(found[i]);
		}
		CHECK(found_of_file);
		fixture_close(&fixture);
	}
}

// Is there an inlined function of that name in the program, and is it bare?
static bool find_inlined(struct fixture *fixture, const char *name, bool bare)
{
	uint64_t start, end;
	bool found = false;

	oracle_text(fixture->path, &start, &end);
	for (uint64_t at = start; at < end; at++) {
		struct places places = { 0 };

		symbols_file_find(fixture->file, at, &places);
		for (size_t i = 0; i + 1 < places.count; i++) {
			const char *function = places.items[i].function;
			char *shown = function ? demangle(function) : NULL;

			if (function && strcmp(shown ? shown : function, name) == 0 &&
			    places.items[i].bare == bare)
				found = true;
			mem_free(shown);
		}
		places_fini(&places);
	}
	return found;
}

// "<utside" is a name that no compiler writes: brackets that do not end.
TEST(a_class_of_a_name_that_cannot_be_is_written_as_it_is)
{
	const char *path = build("g++", "-std=c++20 -O2 -g", scopes);
	struct fixture fixture;

	oracle_run("LC_ALL=C sed -i 's/outside/<utside/g' %s", path);
	fixture_open(&fixture, path);
	CHECK(find_inlined(&fixture, "outer(<utside*)", false));
	fixture_close(&fixture);
}

TEST(inlined_functions_with_little_debug_information_have_the_names_of_their_own_code)
{
	static const struct {
		const char *compiler, *flags;
		bool little;  // debug information: no scopes
		bool no_copy; // and the function's own code has none
	} forms[] = {
		{ "g++", "-O2 -g", false, false },
		{ "g++", "-O2 -g1", true, false },
		{ "clang++", "-O2 -g1", true, true },
		{ "clang++", "-O2 -gline-tables-only", true, true },
	};
	static const char both[] = "ns::(anonymous namespace)::both(int)";
	static const char only[] = "ns::(anonymous namespace)::only(int)";

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct fixture fixture;

		if (strcmp(forms[i].compiler, "clang++") == 0 &&
		    access("/usr/bin/clang++", X_OK) != 0)
			continue;
		fixture_open(&fixture, build(forms[i].compiler, forms[i].flags,
					     "test/programs/symbols_bare.cpp"));
		CHECK(find_inlined(&fixture, forms[i].no_copy ? "both" : both, forms[i].no_copy));
		CHECK(find_inlined(&fixture, forms[i].little ? "only" : only, forms[i].little));
		fixture_close(&fixture);
	}
}

TEST(addresses_all_over_libc_are_named_as_addr2line_names_them)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	struct oracle oracle = { 0 };
	struct fixture fixture;
	struct str debug = { 0 };
	uint64_t start, end;

	if (access(path, R_OK) != 0)
		SKIP("no libc where Debian has it");
	fixture_open(&fixture, path);
	str_format(&debug, "/usr/lib/debug/.build-id/%02x/", fixture.identity.build_id[0]);
	for (size_t i = 1; i < fixture.identity.build_id_length; i++)
		str_format(&debug, "%02x", fixture.identity.build_id[i]);
	str_add(&debug, ".debug");
	oracle_text(path, &start, &end);
	oracle_compare(&oracle, fixture.file, path,
		       access(str_get(&debug), R_OK) == 0 ? str_get(&debug) : path, start, end,
		       613);
	printf("libc: %zu same, %zu gap, %zu alias, %zu file, %zu wrong\n", oracle.same, oracle.gap,
	       oracle.alias, oracle.file, oracle.wrong);
	CHECK_EQ(0, oracle.wrong);
	CHECK(oracle.same > 1000);
	CHECK_EQ(0, fixture.remarks.count);
	str_fini(&debug);
	fixture_close(&fixture);
	oracle_fini(&oracle);
}

TEST(an_address_in_no_function_has_no_name)
{
	const char *path = build("gcc", "-O2 -g0 -s", inlined);
	struct fixture fixture;
	uint64_t start, end;

	// Stripped: only dynamic symbols are left, and none of them covers .text.
	fixture_open(&fixture, path);
	oracle_text(path, &start, &end);
	for (uint64_t at = start; at < end; at++)
		CHECK(name_at(&fixture, at) == NULL);
	CHECK(name_at(&fixture, 0) == NULL);
	CHECK(name_at(&fixture, UINT64_MAX) == NULL);
	fixture_close(&fixture);
}

// GraalVM's images export each entry under two names, of which one has no size, and no other
// function of theirs has a name.
TEST(a_name_without_a_size_ends_where_its_twin_with_a_size_ends)
{
	static const char *const text = ".text\n.globl twin, whole, label\n.type twin, @function\n"
					".type whole, @function\ntwin:\nwhole: .fill 16, 1, 0x90\n"
					".size whole, 16\n.fill 4096, 1, 0x90\n"
					"label: .fill 64, 1, 0x90\n";
	const char *path = test_temp_path("twins.so"), *source = test_temp_path("twins.s");
	struct fixture fixture;
	uint64_t start, end;
	FILE *file = fopen(source, "w");

	CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
	oracle_run("gcc -shared -nostdlib %s -o %s && strip %s", source, path, path);
	fixture_open(&fixture, path);
	oracle_text(path, &start, &end);
	CHECK_STR("whole", name_at(&fixture, start + 15));
	CHECK(name_at(&fixture, start + 16) == NULL);
	CHECK(name_at(&fixture, start + 16 + 4095) == NULL);
	CHECK_STR("label", name_at(&fixture, start + 16 + 4096));
	CHECK_STR("label", name_at(&fixture, start + 16 + 4096 + 63));
	fixture_close(&fixture);
}

// Build with debug information, take it out into `debug`, and leave a link to it.
static uint64_t split_off(const char *path, const char *debug, const char *link)
{
	uint64_t offset = offset_of(path, "is_split");

	oracle_run("objcopy --only-keep-debug %s %s && strip -s %s && "
		   "cd $(dirname %s) && objcopy --add-gnu-debuglink=%s %s",
		   path, debug, path, debug, link, path);
	return offset;
}

TEST(a_debug_link_is_followed_beside_the_file)
{
	const char *path = build("gcc", "-O2 -g -Wl,--build-id=none", inlined);
	const char *debug = test_temp_path("program.debug");
	uint64_t offset = split_off(path, debug, "program.debug");
	struct fixture fixture;

	fixture_open(&fixture, path);
	CHECK_EQ(0, fixture.identity.build_id_length);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK(has_line_at(&fixture, offset));
	fixture_close(&fixture);
}

TEST(a_debug_link_is_followed_into_the_hidden_directory)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	const char *debug = test_temp_path("program.debug");
	uint64_t offset = split_off(path, debug, "program.debug");
	struct fixture fixture;

	oracle_run("mkdir %s/.debug && mv %s %s/.debug/", test_temp_dir(), debug, test_temp_dir());
	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK(has_line_at(&fixture, offset));
	fixture_close(&fixture);
}

TEST(a_debug_file_with_another_checksum_is_refused_and_remarked)
{
	const char *path = build("gcc", "-O2 -g -Wl,--build-id=none", inlined);
	const char *debug = test_temp_path("program.debug");
	uint64_t offset = split_off(path, debug, "program.debug");
	struct fixture fixture;

	oracle_run("printf x >> %s", debug);
	fixture_open(&fixture, path);
	CHECK(name_at(&fixture, offset) == NULL);
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("does not belong to", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(a_debug_file_with_another_build_id_is_refused)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	const char *debug = test_temp_path("program.debug");
	uint64_t offset = split_off(path, debug, "program.debug");
	struct fixture fixture;

	oracle_run("objcopy --update-section .note.gnu.build-id=/dev/null %s 2> /dev/null || "
		   "printf x | dd of=%s bs=1 seek=$(( $(readelf -SW %s | "
		   "awk '/build-id/ { print \"0x\" $5 }') + 20 )) conv=notrunc 2> /dev/null",
		   debug, debug, debug);
	fixture_open(&fixture, path);
	CHECK(name_at(&fixture, offset) == NULL);
	fixture_close(&fixture);
}

TEST(a_debug_file_is_found_by_build_id_in_the_users_directories)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	const char *debug = test_temp_path("elsewhere.debug");
	uint64_t offset = split_off(path, debug, "elsewhere.debug");
	struct str place = { 0 }, list = { 0 };
	struct fixture fixture;

	fixture_open(&fixture, path);
	str_format(&place, "%s/store/.build-id/%02x", test_temp_dir(),
		   fixture.identity.build_id[0]);
	oracle_run("mkdir -p %s", str_get(&place));
	str_add_char(&place, '/');
	for (size_t i = 1; i < fixture.identity.build_id_length; i++)
		str_format(&place, "%02x", fixture.identity.build_id[i]);
	oracle_run("mv %s %s.debug", debug, str_get(&place));
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);

	str_format(&list, "/nowhere::%s/store", test_temp_dir());
	fixture.search.directories = str_get(&list);
	fixture_again(&fixture);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK(has_line_at(&fixture, offset));

	// The build-id leads there even when the file itself is gone.
	unlink(path);
	fixture_again(&fixture);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK_EQ(1, fixture.remarks.count);
	fixture_close(&fixture);
	STR_FINI(&place, &list);
}

TEST(a_copy_of_the_file_is_found_in_the_users_directories)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	uint64_t offset = offset_of(path, "is_split");
	struct fixture fixture;
	struct str list = { 0 };

	fixture_open(&fixture, path);
	str_format(&list, "%s/copies", test_temp_dir());
	oracle_run("mkdir %s && mv %s %s/", str_get(&list), path, str_get(&list));
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);
	fixture.search.directories = str_get(&list);
	fixture_again(&fixture);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK(has_line_at(&fixture, offset));
	fixture_close(&fixture);
	str_fini(&list);
}

// As rpm does: the function symbols, packed with xz, in .gnu_debugdata.
static void pack_symbols(const char *path, const char *debug)
{
	const char *small = test_temp_path("mini");
	const char *packed = test_temp_path("mini.xz");
	static uint8_t in[1 << 20], out[1 << 20];
	size_t in_size, out_size = 0;
	FILE *file;

	oracle_run("objcopy -S --remove-section .gdb_index --remove-section .comment "
		   "--keep-symbol is_split --keep-symbol compare %s %s",
		   debug, small);
	file = fopen(small, "rb");
	in_size = fread(in, 1, sizeof in, file);
	fclose(file);
	CHECK_EQ(LZMA_OK, lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, in, in_size, out,
						  &out_size, sizeof out));
	file = fopen(packed, "wb");
	fwrite(out, 1, out_size, file);
	fclose(file);
	oracle_run("strip -s %s && objcopy --add-section .gnu_debugdata=%s %s", path, packed, path);
}

TEST(a_packed_symbol_table_is_read)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	const char *debug = test_temp_path("full");
	uint64_t split = offset_of(path, "is_split"), other = offset_of(path, "compare");
	uint64_t unknown = offset_of(path, "stands_alone");
	struct fixture fixture;

	oracle_run("objcopy --only-keep-debug %s %s", path, debug);
	pack_symbols(path, debug);
	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, split));
	CHECK_STR("compare", name_at(&fixture, other));
	CHECK(name_at(&fixture, unknown) == NULL);
	CHECK_EQ(0, fixture.remarks.count);
	fixture_close(&fixture);
}

TEST(a_damaged_packed_symbol_table_is_remarked)
{
	const char *path = build("gcc", "-O2 -g0 -s", inlined);
	const char *junk = test_temp_path("junk");
	struct fixture fixture;

	oracle_run("head -c 5000 %s > %s && objcopy --add-section .gnu_debugdata=%s %s", path, junk,
		   junk, path);
	fixture_open(&fixture, path);
	CHECK(name_at(&fixture, 0x1234) == NULL);
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS(".gnu_debugdata is damaged", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(shared_debug_information_of_dwz_is_followed)
{
	const char *one = build("g++", "-O2 -g", templates);
	const char *two = test_temp_path("two");
	struct oracle oracle = { 0 };
	struct fixture fixture;
	uint64_t start, end;

	if (system("command -v dwz > /dev/null") != 0)
		SKIP("dwz is not installed");
	oracle_run("cp %s %s && cd %s && dwz -m shared.dwz program two", one, two, test_temp_dir());
	fixture_open(&fixture, one);
	oracle_text(one, &start, &end);
	oracle_compare(&oracle, fixture.file, one, one, start, end, 3);
	CHECK_EQ(0, oracle.wrong);
	CHECK(oracle.same > 1000);
	fixture_close(&fixture);
	oracle_fini(&oracle);
}

TEST(split_dwarf_is_followed)
{
	const char *path = test_temp_path("program");
	struct fixture fixture;
	struct places places = { 0 };
	uint64_t offset;

	oracle_run("cd %s && gcc -w -O2 -g -gsplit-dwarf %s -o program", test_temp_dir(),
		   test_source_path(inlined));
	fixture_open(&fixture, path);
	offset = offset_of(path, "stands_alone");
	for (uint64_t at = offset; at < offset + 64 && places.count < 6; at++) {
		places_clear(&places);
		symbols_file_find(fixture.file, at, &places);
	}
	CHECK(places.count >= 6);
	CHECK_STR("stands_alone", places.items[places.count - 1].function);
	CHECK_STR("inlined_1", places.items[places.count - 2].function);
	CHECK_CONTAINS("symbols_inlined.c", places.items[places.count - 1].file);
	CHECK_EQ(56, places.items[places.count - 1].line);
	places_fini(&places);
	fixture_close(&fixture);
}

// How many places the first address of `function` has that any name is inlined into.
static size_t depth_at(struct fixture *fixture, const char *function)
{
	uint64_t offset = offset_of(fixture->path, function);
	size_t depth = 0;

	for (uint64_t at = offset; at < offset + 64; at++) {
		struct places places = { 0 };

		symbols_file_find(fixture->file, at, &places);
		depth = places.count > depth ? places.count : depth;
		places_fini(&places);
	}
	return depth;
}

TEST(split_dwarf_that_is_gone_is_said_once_and_names_stay)
{
	static const char *const forms[] = { "gcc -gdwarf-5", "gcc -gdwarf-4", "clang -gdwarf-5" };

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const char *path = test_temp_path("program");
		struct fixture fixture;

		if (i == 2 && access("/usr/bin/clang", X_OK) != 0)
			continue;
		oracle_run(
			"cd %s && rm -f program *.dwo && %s -w -O2 -gsplit-dwarf -c %s -o one.o && "
			"%s -w -O2 -gsplit-dwarf -Dmain=other -c %s -o two.o && "
			"objcopy --redefine-sym stands_alone=stands_too two.o && "
			"gcc -Wl,-z,muldefs one.o two.o -o program && rm -f *.dwo",
			test_temp_dir(), forms[i], test_source_path(inlined), forms[i],
			test_source_path(inlined));
		fixture_open(&fixture, path);
		CHECK_STR("is_split", name_at(&fixture, offset_of(path, "is_split")));
		CHECK(has_line_at(&fixture, offset_of(path, "is_split")));
		CHECK_EQ(1, fixture.remarks.count);
		CHECK_CONTAINS("one.dwo and 1 more cannot be found", fixture.remarks.lines[0]);
		fixture_close(&fixture);
	}
}

TEST(split_dwarf_of_another_build_is_said)
{
	const char *path = test_temp_path("program");
	struct fixture fixture;

	oracle_run("cd %s && rm -f *.dwo && gcc -w -O2 -g -gsplit-dwarf -c %s -o one.o && "
		   "gcc one.o -o program && gcc -w -O1 -g -gsplit-dwarf -c %s -o one.o",
		   test_temp_dir(), test_source_path(inlined), test_source_path(inlined));
	fixture_open(&fixture, path);
	CHECK_EQ(1, depth_at(&fixture, "stands_alone"));
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("dwo cannot be used", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(sections_that_zstd_packed_are_read)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	struct fixture fixture;

	oracle_run("cd %s && (objcopy --compress-debug-sections=zstd program packed 2> refused || "
		   "touch none)",
		   test_temp_dir());
	if (access(test_temp_path("none"), F_OK) == 0)
		SKIP("objcopy does not know zstd");
	fixture_open(&fixture, test_temp_path("packed"));
	CHECK_EQ(0, fixture.remarks.count);
	CHECK(depth_at(&fixture, "stands_alone") >= 6);
	CHECK(has_line_at(&fixture, offset_of(path, "is_split")));
	fixture_close(&fixture);
}

// Write `byte` at `at` of the section, which readelf finds.
static void spoil(const char *path, const char *section, unsigned at, unsigned byte)
{
	oracle_run("printf '\\%03o' | "
		   "dd of=%s conv=notrunc bs=1 status=none seek=$((0x$(readelf -SW %s "
		   "| sed 's/.*\\]//' | awk '$1 == \"%s\" { print $4 }') + %u))",
		   byte, path, path, section, at);
}

TEST(sections_that_are_damaged_or_packed_in_an_unknown_form_are_said)
{
	const char *path = build("gcc", "-O2 -g -gz=zlib", inlined);
	struct fixture fixture;

	spoil(path, ".debug_info", 0, 9);
	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, offset_of(path, "is_split")));
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("packed in a form that is not known (9;", fixture.remarks.lines[0]);
	fixture_close(&fixture);

	path = build("gcc", "-O2 -g -gz=zlib", inlined);
	spoil(path, ".debug_info", 0, 2);
	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, offset_of(path, "is_split")));
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("that zstd packed is damaged", fixture.remarks.lines[0]);
	fixture_close(&fixture);

	// One that is to become nothing, in a file of whole pages.
	path = build("gcc", "-O2 -g -gz=zlib", inlined);
	spoil(path, ".debug_info", 0, 2);
	for (unsigned at = 8; at < 16; at++)
		spoil(path, ".debug_info", at, 0);
	oracle_run("truncate -s %%4096 %s", path);
	fixture_open(&fixture, path);
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("that zstd packed is damaged", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(what_debuginfod_fetched_for_others_is_used)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	struct fixture fixture;

	oracle_run("cd %s && d=cache/$(readelf -n program | sed -n 's/.*Build ID: //p') && "
		   "mkdir -p $d && "
		   "objcopy --only-keep-debug program $d/debuginfo && "
		   "objcopy --strip-debug program",
		   test_temp_dir());
	setenv("DEBUGINFOD_CACHE_PATH", test_temp_path("cache"), 1);
	fixture_open(&fixture, path);
	CHECK(depth_at(&fixture, "stands_alone") >= 6);
	fixture_close(&fixture);
	// An empty file: no server had it.
	oracle_run("cd %s && for f in cache/*/debuginfo; do : > $f; done", test_temp_dir());
	fixture_open(&fixture, path);
	CHECK_EQ(1, depth_at(&fixture, "stands_alone"));
	CHECK_EQ(0, fixture.remarks.count);
	fixture_close(&fixture);
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

TEST(a_file_with_another_build_id_is_not_used)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	uint64_t offset = offset_of(path, "is_split");
	struct fixture fixture;

	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, offset));
	build("gcc", "-O1 -g", inlined);
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);
	CHECK_EQ(1, fixture.remarks.count);
	CHECK_CONTAINS("has changed since the recording", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(a_file_without_build_id_that_was_touched_is_not_used)
{
	const char *path = build("gcc", "-O2 -g -Wl,--build-id=none", inlined);
	uint64_t offset = offset_of(path, "is_split");
	struct fixture fixture;

	fixture_open(&fixture, path);
	CHECK_STR("is_split", name_at(&fixture, offset));
	oracle_run("touch -d '2001-02-03' %s", path);
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);
	CHECK_CONTAINS("has changed since the recording", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(a_deleted_file_is_named_if_it_is_back)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	uint64_t offset = offset_of(path, "is_split");
	struct str deleted = { 0 };
	struct fixture fixture;

	fixture_open(&fixture, path);
	str_format(&deleted, "%s (deleted)", path);
	fixture.identity.path = str_get(&deleted);
	fixture_again(&fixture);
	CHECK_STR("is_split", name_at(&fixture, offset));
	CHECK_EQ(0, fixture.remarks.count);
	unlink(path);
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);
	CHECK_CONTAINS("was deleted while it ran", fixture.remarks.lines[0]);
	fixture_close(&fixture);
	str_fini(&deleted);
}

TEST(a_file_that_was_replaced_is_named_while_a_process_has_it_mapped)
{
	const char *path = build("gcc", "-O2 -g", inlined);
	uint64_t offset = offset_of(path, "is_split");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	struct fixture fixture;

	close(fd);
	fixture_open(&fixture, path);
	build("gcc", "-O1 -g", inlined);
	fixture_again(&fixture);
	CHECK(name_at(&fixture, offset) == NULL);
	fixture.identity.pid = (uint32_t)getpid();
	fixture_again(&fixture);
	// By addresses the kernel opens files for root alone.
	if (geteuid() == 0) {
		CHECK_STR("is_split", name_at(&fixture, offset));
		CHECK_EQ(0, fixture.remarks.count);
	}
	munmap(mapped, 4096);
	fixture_close(&fixture);
}

TEST(what_is_no_file_has_no_names_and_no_remark)
{
	static const char *const paths[] = { "",
					     "[heap]",
					     "linux-vdso.so.1",
					     "/memfd:jit (deleted)",
					     "/dev/zero (deleted)",
					     "anon_inode:[perf]" };
	struct fixture fixture = { 0 };

	fixture.search.remarks = &fixture.remarks;
	fixture.identity.build_id = (const uint8_t *)"12345678901234567890";
	fixture.identity.build_id_length = 20;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		fixture.identity.path = paths[i];
		fixture_again(&fixture);
		CHECK(name_at(&fixture, 0x1000) == NULL);
		CHECK_EQ(0, fixture.remarks.count);
	}
	fixture_close(&fixture);
}

TEST(what_is_not_elf_is_remarked)
{
	const char *path = test_temp_path("text");
	struct fixture fixture = { .identity = { .path = path } };

	fixture.search.remarks = &fixture.remarks;
	oracle_run("echo hello > %s", path);
	fixture_again(&fixture);
	CHECK(name_at(&fixture, 0) == NULL);
	CHECK_CONTAINS("not an ELF file", fixture.remarks.lines[0]);
	unlink(path);
	oracle_run("mkfifo %s", path);
	fixture_again(&fixture);
	CHECK_CONTAINS("not a regular file", fixture.remarks.lines[0]);
	fixture_close(&fixture);
}

TEST(damaged_files_do_no_harm)
{
	const char *path = build("g++", "-O1 -g", templates);
	const char *copy = test_temp_path("copy");
	static uint8_t bytes[4 << 20], broken[4 << 20];
	uint64_t state = 12345, start, end;
	size_t size;
	FILE *file = fopen(path, "rb");

	size = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	CHECK(size > 10000 && size < sizeof bytes);
	oracle_text(path, &start, &end);
	for (int round = 0; round < 150; round++) {
		struct remarks remarks = { 0 };
		struct search search = { .remarks = &remarks };
		struct symbols_file_identity identity = { .path = copy };
		struct symbols_file *opened;
		struct places places = { 0 };
		size_t cut = size;

		memcpy(broken, bytes, size);
		for (int i = 0; i < 1 + round * 4; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			broken[(state >> 20) % size] = (uint8_t)(state >> 12);
		}
		if (round % 5 == 4)
			cut = (state >> 20) % size;
		unlink(copy);
		file = fopen(copy, "wb");
		fwrite(broken, 1, cut, file);
		fclose(file);
		opened = symbols_file_open(&identity, &search);
		for (uint64_t at = start; at < end; at += 61) {
			places_clear(&places);
			symbols_file_find(opened, at, &places);
			CHECK(places.count > 0);
		}
		symbols_file_close(opened);
		places_fini(&places);
		remarks_fini(&remarks);
	}
}

// DWARF in which each function claims the one after next as its sibling: read level by level, every
// function would be met again on each level, which doubles the work with every one.
TEST(siblings_that_overlap_are_walked_once)
{
	enum { COUNT = 200 };
	const char *source = test_temp_path("siblings.s"), *path = test_temp_path("siblings.so");
	FILE *file = fopen(source, "w");
	struct fixture fixture;
	struct places places = { 0 };

	CHECK(file != NULL);
	fputs(".text\n.type code, @function\ncode: .skip 64\n.size code, 64\n"
	      ".section .debug_abbrev,\"\",@progbits\n"
	      ".byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n" // unit: low_pc, high_pc
	      // function: sibling and name too
	      ".byte 2, 0x2e, 1, 0x01, 0x13, 3, 8, 0x11, 1, 0x12, 6, 0, 0\n"
	      ".byte 0\n"
	      ".section .debug_info,\"\",@progbits\n"
	      "begin: .long end - begin - 4\n.short 4\n.long 0\n.byte 8\n"
	      ".uleb128 1\n.quad code\n.long 64\n",
	      file);
	for (int i = 0; i < COUNT; i++)
		fprintf(file,
			"f%d: .uleb128 2\n.long %s%d - begin\n.asciz \"function_%d\"\n"
			".quad code + %d\n.long 1\n",
			i, i + 2 < COUNT ? "f" : "last", i + 2 < COUNT ? i + 2 : 0, i, i % 64);
	fputs("last0: .byte 0\nend:\n", file);
	fclose(file);
	oracle_run("gcc -shared -nostdlib %s -o %s", source, path);
	fixture_open(&fixture, path);
	symbols_file_find(fixture.file, offset_of(path, "code") + 5, &places);
	CHECK_CONTAINS("function_", places.items[0].function);
	places_fini(&places);
	fixture_close(&fixture);
}

TEST(where_there_are_more_remarks_than_are_kept_the_last_one_says_so)
{
	struct remarks remarks = { 0 };

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < REMARKS_MAX - 1; i++)
			remarks_add(&remarks, "lib%d.so is not there", i);
	CHECK_EQ(REMARKS_MAX - 1, remarks.count);
	for (int i = 0; i < 3; i++)
		remarks_add(&remarks, "libother%d.so is not there", i);
	CHECK_EQ(REMARKS_MAX, remarks.count);
	CHECK_STR("lib498.so is not there", remarks.lines[REMARKS_MAX - 2]);
	CHECK_STR("more could not be used than is said here", remarks.lines[REMARKS_MAX - 1]);
	remarks_fini(&remarks);
}
