// Names of generated code: perf maps and jitdumps, as runtimes write them and as they would not.
#include "base/mem.h"
#include "base/str.h"
#include "collect/code_names.h"
#include "test/test.h"

#include <stdio.h>
#include <string.h>

enum { WANTED = 4 };

// Addresses 0x1000, 0x2000, 0x3000 and the last one there is, in another order.
static void want(struct code_wanted wanted[static WANTED])
{
	memset(wanted, 0, WANTED * sizeof *wanted);
	wanted[0].pc = 0x3000;
	wanted[1].pc = 0x1000;
	wanted[2].pc = UINT64_MAX;
	wanted[3].pc = 0x2000;
	for (uint32_t i = 0; i < WANTED; i++)
		wanted[i].frame = i + 1;
}

static bool find(struct code_wanted *wanted, const char *text)
{
	size_t size = strlen(text);

	return code_names_find_in_map(wanted, WANTED, (const char *)test_guarded_copy(text, size),
				      size);
}

// "function file:line", "" where there is none.
static const char *name_of(const struct code_wanted *wanted)
{
	static char text[256];
	struct trace_name name;

	if (wanted->length == 0)
		return "";
	code_names_split(wanted, &name);
	snprintf(text, sizeof text, "%s %s:%u", name.function, name.file, name.line);
	mem_free(name.function);
	mem_free(name.file);
	return text;
}

TEST(code_names_finds_the_functions_of_a_map)
{
	struct code_wanted wanted[WANTED];

	want(wanted);
	CHECK(find(wanted, "1000 10 first\n"
			   "0x1fff 2 JS:*work file:///a/b c.js:12:3\n"
			   "2f00 100 just before\n"
			   "ffffffffffffff00 100 py::last:/x/y.py"));
	CHECK_STR("first :0", name_of(&wanted[0]));
	CHECK_STR("work /a/b c.js:12", name_of(&wanted[1]));
	CHECK_STR("", name_of(&wanted[2]));
	CHECK_STR("last /x/y.py:0", name_of(&wanted[3]));
	CHECK(!wanted[0].several);
}

TEST(code_names_of_node_18_have_a_line_and_no_column)
{
	struct code_wanted wanted[WANTED];

	want(wanted);
	CHECK(find(wanted, "1000 10 LazyCompile:~hot /tmp/w.js:7\n"
			   "2000 1 Function:^cold node:fs\n"));
	CHECK_STR("hot /tmp/w.js:7", name_of(&wanted[0]));
	CHECK_STR("cold node:fs :0", name_of(&wanted[1]));
}

TEST(code_names_takes_the_last_line_and_says_that_there_were_others)
{
	struct code_wanted wanted[WANTED];

	want(wanted);
	CHECK(find(wanted, "1000 10 one\n2000 1 same\n1000 8 two\n2000 1 same\n"));
	CHECK_STR("two :0", name_of(&wanted[0]));
	CHECK(wanted[0].several);
	CHECK(!wanted[1].several);
}

TEST(code_names_steps_over_lines_that_make_no_sense)
{
	static const char *const lines[] = { "",
					     "\n\n\n",
					     "1000",
					     "1000 10",
					     "1000 10 ",
					     "g000 10 a\n",
					     "1000 zz a\n",
					     "1000 ffffffffffffffff all\n",
					     "-1000 10 a\n",
					     "10000000000000000 10 a\n",
					     NULL };
	struct code_wanted wanted[WANTED];

	for (size_t i = 0; lines[i]; i++) {
		want(wanted);
		CHECK(find(wanted, lines[i]));
		for (size_t k = 0; k < WANTED; k++)
			CHECK_EQ(0, wanted[k].length);
	}
}

// A jitdump, as it is put together.
struct dump {
	uint8_t bytes[4096];
	size_t size;
};

static void put(struct dump *dump, uint64_t value, size_t size)
{
	memcpy(dump->bytes + dump->size, &value, size);
	dump->size += size;
}

static void put_text(struct dump *dump, const char *text)
{
	memcpy(dump->bytes + dump->size, text, strlen(text) + 1);
	dump->size += strlen(text) + 1;
}

static void put_head(struct dump *dump)
{
	dump->size = 0;
	put(dump, 0x4a695444, 4);
	put(dump, 1, 4);
	put(dump, 40, 4);
	dump->size = 40;
}

static void put_load(struct dump *dump, uint64_t time, uint64_t start, uint64_t size,
		     const char *name)
{
	put(dump, 0, 4);
	put(dump, 16 + 40 + strlen(name) + 1 + 4, 4);
	put(dump, time, 8);
	put(dump, 7, 8);
	put(dump, start, 8);
	put(dump, start, 8);
	put(dump, size, 8);
	put(dump, 1, 8);
	put_text(dump, name);
	put(dump, 0x90909090, 4); // the code
}

static void put_line(struct dump *dump, uint64_t start, uint32_t line, const char *file)
{
	put(dump, 2, 4);
	put(dump, 16 + 16 + 16 + strlen(file) + 1, 4);
	put(dump, 0, 8);
	put(dump, start, 8);
	put(dump, 1, 8);
	put(dump, start, 8);
	put(dump, line, 4);
	put(dump, 0, 4);
	put_text(dump, file);
}

static bool find_in_dump(struct code_wanted *wanted, const struct dump *dump, size_t size)
{
	return code_names_find_in_dump(wanted, WANTED, test_guarded_copy(dump->bytes, size), size);
}

TEST(code_names_binds_functions_of_a_jitdump_by_time)
{
	struct code_wanted wanted[WANTED];
	struct dump dump = { .size = 0 };

	put_head(&dump);
	put_load(&dump, 1000000, 0x1000, 0x10, "early");
	put_line(&dump, 0x1000, 77, "/src/x.c");
	put_load(&dump, 5000000, 0x1000, 0x10, "later");
	put_load(&dump, 5000000, 0x2000, 0x10, "made after it was seen");
	want(wanted);
	wanted[1].seen_ns = 2000000;
	CHECK(find_in_dump(wanted, &dump, dump.size));
	CHECK_STR("early :0", name_of(&wanted[0]));
	CHECK(wanted[0].several || wanted[0].told_ns == 1000000);
	CHECK_STR("made after it was seen :0", name_of(&wanted[1]));
	want(wanted);
	wanted[1].seen_ns = 6000000;
	CHECK(find_in_dump(wanted, &dump, dump.size));
	CHECK_STR("later /src/x.c:77", name_of(&wanted[0]));
}

TEST(code_names_reads_a_jitdump_that_is_cut_anywhere)
{
	struct code_wanted wanted[WANTED];
	struct dump dump = { .size = 0 };

	put_head(&dump);
	put_line(&dump, 0x1000, 77, "/src/x.c");
	put_load(&dump, 1, 0x1000, 0x10, "work");
	for (size_t size = 0; size < dump.size; size++) {
		want(wanted);
		CHECK(find_in_dump(wanted, &dump, size));
		CHECK_EQ(0, wanted[0].length);
	}
	want(wanted);
	CHECK(find_in_dump(wanted, &dump, dump.size));
	CHECK_STR("work /src/x.c:77", name_of(&wanted[0]));
}

TEST(code_names_bounds_its_work)
{
	static struct code_wanted wanted[4096];
	struct str text = { 0 };

	for (size_t i = 0; i < 4096; i++)
		wanted[i].pc = 0x1000 + i;
	for (size_t i = 0; i < 8192; i++)
		str_format(&text, "0 10000 f%zu\n", i);
	CHECK(!code_names_find_in_map(wanted, 4096, str_get(&text), text.length));
	str_fini(&text);
}
