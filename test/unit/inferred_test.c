// Functions without a name are wrappers if their callers are all over the program.
#include "report/ask/inferred.h"
#include "report/ask/names.h"
#include "test/unit/assembled.h"

#include <string.h>

enum { PAGE = 4096 };

// A file m with a function at 0x7010 that `callers` functions call, each in a page of its own (or
// all in one), and `others` that call malloc themselves; below it `inner`, of the C library.
static struct reader *program(unsigned callers, bool one_page, unsigned others, const char *inner)
{
	struct str text = { 0 };
	struct reader *reader;

	str_add(&text, "process p\nthread t p\n"
		       "module m p 0x7000-0x90000 bias=0x7000 \"/opt/bin/app\"\n"
		       "module c p 0x90000-0x99000 bias=0x90000 \"/lib/libq.so.1\"\n"
		       "frame w m 0x7010\nframe main m 0x7100\nframe dup c 0x90100\n"
		       "name dup \"strdup\"\n");
	for (unsigned i = 0; i < callers; i++)
		str_format(&text, "frame by%u m 0x%x\nstack of%u %s w < by%u < main\n", i,
			   0x8000 + i * (one_page ? 16 : PAGE), i, inner, i);
	for (unsigned i = 0; i < others; i++)
		str_format(&text, "frame own%u m 0x%x\nstack its%u own%u < main\n", i,
			   0x60000 + i * 16, i, i);
	str_add(&text, "end\n");
	reader = assembled_open(str_get(&text));
	str_fini(&text);
	return reader;
}

// Whether the function is passed over in the first stack, and what the stack is then called after.
static bool passed_over(struct reader *reader, uint64_t *face)
{
	struct names *names = names_new(reader, NULL);
	stack_id id = 0;
	size_t depth = 0;
	bool wraps = false;

	for (id = 1; id < reader_stacks_count(reader) && depth < 3; id++) {
		depth = 0;
		for (stack_id up = id; up; up = reader_stack(reader, up)->parent)
			depth++;
	}
	*face = names_face(names, id - 1, false)->offset;
	for (frame_id frame = 1; frame < reader_frames_count(reader); frame++) {
		size_t count;
		const struct symbol *symbol = names_find(names, frame, &count);

		if (symbol->offset == 0x10 && !symbol->function)
			wraps = names_passes_on(names, frame, symbol);
	}
	CHECK(wraps == (*face != 0x10));
	names_free(names);
	reader_close(reader);
	return wraps;
}

TEST(inferred_is_who_is_called_from_eight_pages_in_a_quarter_of_all_stacks)
{
	uint64_t face;

	CHECK(passed_over(program(8, false, 0, ""), &face));
	CHECK_EQ(0x1000, face);
	CHECK(passed_over(program(8, false, 24, ""), &face));
	CHECK(!passed_over(program(8, false, 32, ""), &face));
	CHECK(!passed_over(program(7, false, 0, ""), &face));
	CHECK(!passed_over(program(40, true, 0, ""), &face));
}

TEST(inferred_looks_at_what_is_innermost_in_its_file)
{
	uint64_t face;

	CHECK(passed_over(program(8, false, 0, "dup <"), &face));
	CHECK_EQ(0x1000, face);
}

TEST(inferred_is_nothing_of_what_is_not_there)
{
	struct reader *reader = program(8, false, 0, "");
	struct inferred *inferred = inferred_new(reader);

	CHECK(!inferred_match(inferred, 0));
	CHECK(!inferred_match(inferred, reader_frames_count(reader)));
	CHECK(!inferred_match(inferred, 4000000000u));
	inferred_free(inferred);
	inferred_free(NULL);
	reader_close(reader);
}
