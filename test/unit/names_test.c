// A stack becomes lines: every frame, inlined functions too, and where the user's own code begins.
#include "report/ask/names.h"
#include "test/unit/assembled.h"

#include <string.h>

static const char trace[] =
	"process p\n"
	"thread t p\n"
	"module m p 0x7000-0x9000 bias=0x7000 \"/opt/lib/libm.so.1\"\n"
	"frame both 0x100\n"
	"name both \"inner\" \"a.c\":1 < \"outer\" \"a.c\":2\n"
	"frame bare m 0x7123\n"
	"frame jit 0x5555\n"
	"stack s1 \"operator new(unsigned long)\" < xstrdup < both < bare < jit < main < "
	"__libc_start_main < _start\n"
	"stack s2 flags=1 malloc < xmalloc\n"
	"stack s3 _start\n"
	"end\n";

// The id of the only stack of `count` frames.
static stack_id stack_of(const struct reader *reader, size_t count)
{
	for (stack_id id = reader_stacks_count(reader) - 1; id > 0; id--) {
		size_t depth = 0;

		for (stack_id up = id; up; up = reader_stack(reader, up)->parent)
			depth++;
		if (depth == count)
			return id;
	}
	return 0;
}

TEST(names_of_a_stack_are_whole_and_leaf_first)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct names_stack stack = names_stack(names, stack_of(reader, 8));

	CHECK_EQ(9, stack.count);
	CHECK_STR("operator new(unsigned long)", stack.lines[0].symbol->function);
	CHECK_STR("inner", stack.lines[2].symbol->function);
	CHECK_EQ(1, stack.lines[2].symbol->line);
	CHECK(stack.lines[2].symbol->inlined);
	CHECK_STR("outer", stack.lines[3].symbol->function);
	CHECK(!stack.lines[3].symbol->inlined);
	CHECK(!stack.lines[4].symbol->function);
	CHECK_STR("/opt/lib/libm.so.1", stack.lines[4].symbol->module);
	CHECK_EQ(0x123, stack.lines[4].symbol->offset);
	CHECK_STR("", stack.lines[5].symbol->module);
	CHECK_EQ(0x5555, stack.lines[5].symbol->offset);
	CHECK_STR("_start", stack.lines[8].symbol->function);
	CHECK_EQ(2, stack.user);
	CHECK_EQ(2, stack.roots);
	CHECK_EQ(0, stack.flags);
	names_free(names);
	reader_close(reader);
}

TEST(names_of_nothing_but_wrappers_begin_at_the_leaf)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct names_stack stack = names_stack(names, stack_of(reader, 2));

	CHECK_EQ(2, stack.count);
	CHECK_EQ(0, stack.user);
	names_free(names);
	reader_close(reader);
}

TEST(names_of_no_stack_and_of_ids_that_are_none_are_harmless)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	size_t count = 0;

	CHECK_EQ(0, names_stack(names, 0).count);
	CHECK_EQ(0, names_stack(names, 4000000000u).count);
	CHECK(names_find(names, 4000000000u, &count) != NULL);
	CHECK_EQ(1, count);
	names_free(names);
	reader_close(reader);
}

static void check_same(const struct symbol *a, const struct symbol *b)
{
	CHECK(a->function == b->function && a->file == b->file && a->line == b->line);
	CHECK_STR(a->module, b->module);
	CHECK_EQ(a->offset, b->offset);
	CHECK_EQ(a->inlined, b->inlined);
}

TEST(names_face_is_the_first_line_that_is_no_wrapper)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);

	for (stack_id id = 1; id < reader_stacks_count(reader); id++) {
		struct names_stack stack = names_stack(names, id);

		check_same(names_face(names, id, false), stack.lines[stack.user].symbol);
		check_same(names_face(names, id, true), stack.lines[0].symbol);
	}
	CHECK(!names_face(names, 0, false));
	CHECK(!names_face(names, reader_stacks_count(reader), false));
	names_free(names);
	reader_close(reader);
}

TEST(names_of_what_a_wrapper_calls_in_its_own_file_are_passed_over)
{
	static const char pools[] = "process p\n"
				    "thread t p\n"
				    "module m p 0x7000-0x9000 bias=0x7000 \"/opt/lib/libm.so.1\"\n"
				    "frame bare m 0x7123\n"
				    "frame pool m 0x7200\n"
				    "name pool \"palloc0\"\n"
				    "frame deep m 0x7150\n"
				    "stack s5 malloc < bare < deep < a < b < c < main < _start\n"
				    "stack s4 malloc < bare < deep < pool < work < main < _start\n"
				    "stack s1 malloc < bare < palloc0 < work < main < _start\n"
				    "stack s2 malloc < bare < pool < work < main\n"
				    "stack s3 bare < pool < bare\n"
				    "end\n";
	struct reader *reader = assembled_open(pools);
	struct names *names = names_new(reader, NULL);

	CHECK_EQ(3, names_stack(names, stack_of(reader, 5)).user);
	CHECK_STR("work", names_face(names, stack_of(reader, 5), false)->function);
	CHECK_EQ(1, names_stack(names, stack_of(reader, 6)).user); // it is another file's
	CHECK_EQ(2, names_stack(names, stack_of(reader, 3)).user);
	CHECK_EQ(4, names_stack(names, stack_of(reader, 7)).user);
	CHECK_STR("work", names_face(names, stack_of(reader, 7), false)->function);
	CHECK_EQ(1, names_stack(names, stack_of(reader, 8)).user);
	CHECK(!names_face(names, stack_of(reader, 8), false)->function);
	names_free(names);
	reader_close(reader);
}

// Of a program of node's: with an addon, without a script of the program's own, without any.
static const char node[] = "process p\n"
			   "thread t p\n"
			   "module n p 0x7000-0x9000 bias=0x7000 \"/usr/bin/node\"\n"
			   "module a p 0xa000-0xb000 bias=0xa000 \"/app/node_sqlite3.node\"\n"
			   "module e p 0xc000-0xd000 bias=0xc000 \"/usr/bin/editor\"\n"
			   "frame strip n 0x7123\n"
			   "frame call n 0x7200\n"
			   "name call \"v8::internal::Invoke(v8::internal::Isolate*)\"\n"
			   "frame main n 0x7300\n"
			   "name main \"main\" \"node_main.cc\":97\n"
			   "frame addon a 0xa100\n"
			   "name addon \"Statement::Bind\"\n"
			   "frame v8 e 0xc100\n"
			   "name v8 \"v8::base::OS::Allocate(void*)\"\n"
			   "frame own e 0xc200\n"
			   "name own \"editor_open\"\n"
			   "frame stub 0x5555\n"
			   "frame alloc 0x5600\n"
			   "name alloc \"alloc\" \"node:buffer\":391\n"
			   "frame load 0x5700\n"
			   "name load \"load\" \"/app/app.js\":12\n"
			   "stack s4 malloc < strip < call < main\n"
			   "stack s6 malloc < strip < call < alloc < call < main\n"
			   "stack s8 malloc < strip < call < stub < alloc < load < call < main\n"
			   "stack s7 malloc < strip < addon < call < load < call < main\n"
			   "stack s5 malloc < addon < call < load < main\n"
			   "stack s9 malloc < v8 < stub < load < own < v8 < v8 < v8 < main\n"
			   "stack s3 malloc < own < load\n"
			   "end\n";

// The id of the stack of malloc that has `count` frames.
static stack_id call_of(const struct reader *reader, struct names *names, size_t count)
{
	for (stack_id id = 1; id < reader_stacks_count(reader); id++) {
		struct names_stack stack = names_stack(names, id);
		const char *function = stack.lines[0].symbol->function;

		if (stack.count == count && function && strcmp(function, "malloc") == 0)
			return id;
	}
	return 0;
}

TEST(names_user_is_the_script_that_called_its_runtime_or_the_addon)
{
	static const struct {
		size_t frames, inner, user;
		const char *function;
	} expected[] = {
		{ 3, 1, 1, "editor_open" },     { 4, 1, 1, NULL },   { 5, 1, 1, "Statement::Bind" },
		{ 6, 1, 3, "alloc" },           { 8, 1, 5, "load" }, { 9, 1, 3, "load" },
		{ 7, 1, 2, "Statement::Bind" },
	};
	struct reader *reader = assembled_open(node);
	struct names *names = names_new(reader, NULL);

	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		stack_id id = call_of(reader, names, expected[i].frames);
		struct names_stack stack = names_stack(names, id);
		const char *function = stack.lines[stack.user].symbol->function;

		CHECK_EQ(expected[i].inner, stack.inner);
		CHECK_EQ(expected[i].user, stack.user);
		if (expected[i].function)
			CHECK_STR(expected[i].function, function);
		else
			CHECK(!function);
		check_same(names_face(names, id, false), stack.lines[stack.user].symbol);
		check_same(names_face(names, id, true), stack.lines[0].symbol);
	}
	names_free(names);
	reader_close(reader);
}

// For example /srv/v2/shop/models.py is shop/models.py, where run.py of /srv/v2 was started.
static const char scripts[] =
	"process p exe=\"/usr/bin/python3\" arg=\"python3\" arg=\"-u\" arg=\"./bin/run.py\"\n"
	"thread t p\n"
	"stack s1 \"f\" \"%s\":1 < \"<module>\" \"/srv/v2/bin/run.py\":3\n"
	"end\n";

TEST(names_tell_a_script_by_its_place_in_the_program)
{
	static const struct {
		const char *file, *place;
	} cases[] = {
		{ "/srv/v2/bin/models.py", "models.py" },
		{ "/srv/v2/bin/shop/models.py", "shop/models.py" },
		{ "/srv/v2/shop/models.py", "shop/models.py" },
		{ "/venv/lib/python3.11/site-packages/pandas/io/sql.py", "pandas/io/sql.py" },
		{ "/usr/lib/python3.11/json/decoder.py", "json/decoder.py" },
		{ "/usr/lib/python3/dist-packages/six.py", "six.py" },
		{ "/x/node_modules/a/node_modules/b/index.js", "b/index.js" },
		{ "/home/ann/tools/log.py", "log.py" },
		{ "/home/ann/tools/__init__.py", "tools/__init__.py" },
		{ "C:\\\\tools\\\\log.py", "log.py" },
		{ "file:///home/ann/log.mjs", "log.mjs" },
		{ "node:internal/buffer", "node:internal/buffer" },
		{ "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct str text = { 0 }, place = { 0 };
		struct reader *reader;
		struct names *names;
		struct names_stack stack;

		str_format(&text, scripts, cases[i].file);
		reader = assembled_open(str_get(&text));
		names = names_new(reader, NULL);
		stack = names_stack(names, stack_of(reader, 2));
		CHECK(names_is_script(stack.lines[0].symbol));
		CHECK_STR(stack.lines[0].symbol->file, stack.lines[0].symbol->module);
		names_add_place(names, stack.lines[0].symbol, &place);
		CHECK_STR(cases[i].place, str_get(&place));
		STR_FINI(&text, &place);
		names_free(names);
		reader_close(reader);
	}
}

// An extension without names is its script's; one with a name, and what a script does not call, is
// not.
TEST(names_pass_over_an_extension_without_names_to_its_script)
{
	static const char text[] =
		"process p\nthread t p\n"
		"module m p 0x7000-0x9000 bias=0x7000 \"/opt/np.so\"\n"
		"module py p 0xa000-0xb000 bias=0xa000 \"/usr/lib/libpython3.11.so.1.0\"\n"
		"frame a m 0x7111\nframe b m 0x7222\nframe n m 0x7333\nname n \"grow\"\n"
		"frame call py 0xa111\nname call \"PyObject_Call\"\n"
		"frame line 0x9 flags=2\nname line \"peak\" \"batch.py\":9\n"
		"stack s %s\nend\n";
	static const struct {
		const char *stack;
		size_t user;
	} cases[] = {
		{ "a < line", 1 },
		{ "a < call < line", 2 },
		{ "a < b < call < line", 3 },
		{ "a < n < a < line", 0 },
		{ "n < a < line", 0 },
		{ "call < line", 0 },
		{ "a < b", 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct str trace_text = { 0 };
		struct reader *reader;
		struct names *names;
		stack_id id;

		str_format(&trace_text, text, cases[i].stack);
		reader = assembled_open(str_get(&trace_text));
		names = names_new(reader, NULL);
		id = reader_stacks_count(reader) - 1;
		CHECK_EQ(cases[i].user, names_stack(names, id).user);
		if (cases[i].user)
			CHECK_STR("peak", names_face(names, id, false)->function);
		str_fini(&trace_text);
		names_free(names);
		reader_close(reader);
	}
}

TEST(names_nobody_knows_code_in_no_file_without_a_name)
{
	struct reader *reader = assembled_open(trace);
	struct names *names = names_new(reader, NULL);
	struct symbol place;
	unsigned unknown = 0;

	for (frame_id id = 1; id < reader_frames_count(reader); id++) {
		size_t count;
		const struct symbol *symbols;

		if (!names_nobody_knows(names, id, &place))
			continue;
		symbols = names_find(names, id, &count);
		unknown++;
		CHECK_EQ(1, count);
		CHECK_EQ(0x5555, place.offset);
		CHECK_EQ(symbols->offset, place.offset);
		CHECK(!place.function && !place.file && !*place.module);
	}
	CHECK_EQ(1, unknown);
	CHECK(!names_nobody_knows(names, reader_frames_count(reader), &place));
	names_free(names);
	reader_close(reader);
}
