// Stacks get one number each, whatever the order they come in.
#include "collect/interner.h"
#include "test/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fixture {
	int fd;
	struct writer *writer;
	struct interner interner;
};

static void begin(struct fixture *fixture, uint32_t frames)
{
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"" };
	struct err err;

	fixture->fd = memfd_create("trace", 0);
	fixture->writer = writer_new(fixture->fd, &info, &err);
	CHECK(fixture->writer != NULL);
	for (uint32_t i = 0; i < frames; i++)
		CHECK_EQ(i + 1, writer_add_frame(fixture->writer, 0, 0x1000 + i, 0));
	interner_init(&fixture->interner, fixture->writer);
}

static void end(struct fixture *fixture)
{
	interner_fini(&fixture->interner);
	writer_free(fixture->writer);
	close(fixture->fd);
}

TEST(interner_gives_equal_stacks_equal_numbers)
{
	struct fixture fixture;
	stack_id outer, inner;

	begin(&fixture, 3);
	outer = interner_push(&fixture.interner, 0, 1, 0);
	inner = interner_push(&fixture.interner, outer, 2, 0);
	CHECK_EQ(1, outer);
	CHECK_EQ(2, inner);
	CHECK_EQ(outer, interner_push(&fixture.interner, 0, 1, 0));
	CHECK_EQ(inner, interner_push(&fixture.interner, outer, 2, 0));
	CHECK_EQ(2, interner_count(&fixture.interner));
	CHECK_EQ(2, interner_frame(&fixture.interner, inner));
	end(&fixture);
}

TEST(interner_tells_the_same_frame_under_other_callers_apart)
{
	struct fixture fixture;
	stack_id a, b;

	begin(&fixture, 3);
	a = interner_push(&fixture.interner, interner_push(&fixture.interner, 0, 1, 0), 3, 0);
	b = interner_push(&fixture.interner, interner_push(&fixture.interner, 0, 2, 0), 3, 0);
	CHECK(a != b);
	CHECK(a != interner_push(&fixture.interner, 0, 3, 0));
	end(&fixture);
}

TEST(interner_tells_a_cut_stack_from_a_whole_one)
{
	struct fixture fixture;
	stack_id whole, cut, incomplete;

	begin(&fixture, 1);
	whole = interner_push(&fixture.interner, 0, 1, 0);
	cut = interner_push(&fixture.interner, 0, 1, TRACE_STACK_CUT);
	incomplete = interner_push(&fixture.interner, 0, 1, TRACE_STACK_INCOMPLETE);
	CHECK(whole != cut && cut != incomplete && whole != incomplete);
	CHECK_EQ(cut, interner_push(&fixture.interner, 0, 1, TRACE_STACK_CUT));
	end(&fixture);
}

TEST(interner_remembers_half_a_million_stacks)
{
	enum { FRAMES = 64, STACKS = 500000 };
	static stack_id ids[STACKS];
	static stack_id parents[STACKS];
	static frame_id frames[STACKS];
	struct fixture fixture;

	begin(&fixture, FRAMES);
	srandom(7);
	for (size_t i = 0; i < STACKS; i++) {
		parents[i] = i < 8 ? 0 : ids[(size_t)random() % i];
		frames[i] = (frame_id)(random() % FRAMES) + 1;
		ids[i] = interner_push(&fixture.interner, parents[i], frames[i], 0);
		CHECK(ids[i] > parents[i]);
	}
	for (size_t i = 0; i < STACKS; i++)
		CHECK_EQ(ids[i], interner_push(&fixture.interner, parents[i], frames[i], 0));
	CHECK(interner_count(&fixture.interner) <= STACKS);
	end(&fixture);
}
