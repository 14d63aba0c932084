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

// A stack, with the hash that goes with it.
struct stack {
	stack_id id;
	uint64_t hash;
};

static struct stack push(struct fixture *fixture, struct stack outer, frame_id frame, uint8_t flags)
{
	uint64_t hash = interner_hash(outer.id != 0 ? outer.hash : interner_root(flags), frame);
	struct interner_push push = { .hash = (uint32_t)(hash >> 32), .frame = frame };

	interner_prefetch(&fixture->interner, hash);
	return (struct stack){ interner_add(&fixture->interner, outer.id, &push, flags), hash };
}

TEST(interner_gives_equal_stacks_equal_numbers)
{
	struct stack none = { 0 }, outer, inner;
	struct fixture fixture;

	begin(&fixture, 3);
	outer = push(&fixture, none, 1, 0);
	inner = push(&fixture, outer, 2, 0);
	CHECK_EQ(1, outer.id);
	CHECK_EQ(2, inner.id);
	CHECK_EQ(1, push(&fixture, none, 1, 0).id);
	CHECK_EQ(2, push(&fixture, outer, 2, 0).id);
	CHECK_EQ(2, fixture.interner.count);
	end(&fixture);
}

TEST(interner_tells_the_same_frame_under_other_callers_apart)
{
	struct stack none = { 0 }, a, b;
	struct fixture fixture;

	begin(&fixture, 3);
	a = push(&fixture, push(&fixture, none, 1, 0), 3, 0);
	b = push(&fixture, push(&fixture, none, 2, 0), 3, 0);
	CHECK(a.id != b.id);
	CHECK(a.id != push(&fixture, none, 3, 0).id);
	end(&fixture);
}

TEST(interner_tells_a_cut_stack_from_a_whole_one)
{
	struct stack none = { 0 };
	stack_id whole, cut, incomplete;
	struct fixture fixture;

	begin(&fixture, 1);
	whole = push(&fixture, none, 1, 0).id;
	cut = push(&fixture, none, 1, TRACE_STACK_CUT).id;
	incomplete = push(&fixture, none, 1, TRACE_STACK_INCOMPLETE).id;
	CHECK(whole != cut && cut != incomplete && whole != incomplete);
	CHECK_EQ(cut, push(&fixture, none, 1, TRACE_STACK_CUT).id);
	end(&fixture);
}

// Where a hash says to look is no proof of being the same.
TEST(interner_tells_stacks_of_one_hash_apart)
{
	struct fixture fixture;
	stack_id ids[64];

	begin(&fixture, 64);
	for (uint32_t i = 0; i < 64; i++)
		ids[i] = interner_add(&fixture.interner, 0,
				      &(struct interner_push){ .hash = UINT32_MAX, .frame = i + 1 },
				      0);
	for (uint32_t i = 0; i < 64; i++) {
		CHECK_EQ(i + 1, ids[i]);
		CHECK_EQ(ids[i],
			 interner_add(&fixture.interner, 0,
				      &(struct interner_push){ .hash = UINT32_MAX, .frame = i + 1 },
				      0));
	}
	end(&fixture);
}

// The table doubles where it lies: what went on behind its own bucket, and from the last one on to
// the first, is found again.
TEST(interner_finds_what_went_on_elsewhere_after_growing)
{
	enum { CROWD = 1500, SPREAD = 40000 };
	struct fixture fixture;
	stack_id next = 0;

	begin(&fixture, 2 * CROWD + SPREAD);
	for (int again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < 2 * CROWD + SPREAD; i++) {
			struct interner_push push = { .frame = i + 1 };

			push.hash = i < CROWD       ? UINT32_MAX - i % 3
				    : i < 2 * CROWD ? i % 5 << 20
						    : i * UINT32_C(0x9e3779b9);
			if (!again)
				next++;
			CHECK_EQ(again ? i + 1 : next,
				 interner_add(&fixture.interner, 0, &push, 0));
		}
		CHECK_EQ(2 * CROWD + SPREAD, fixture.interner.count);
	}
	end(&fixture);
}

TEST(interner_remembers_half_a_million_stacks)
{
	enum { FRAMES = 64, STACKS = 500000 };
	static struct stack stacks[STACKS], parents[STACKS];
	static frame_id frames[STACKS];
	struct fixture fixture;

	begin(&fixture, FRAMES);
	srandom(7);
	for (size_t i = 0; i < STACKS; i++) {
		parents[i] = i < 8 ? (struct stack){ 0 } : stacks[(size_t)random() % i];
		frames[i] = (frame_id)(random() % FRAMES) + 1;
		stacks[i] = push(&fixture, parents[i], frames[i], 0);
		CHECK(stacks[i].id > parents[i].id);
	}
	for (size_t i = 0; i < STACKS; i++)
		CHECK_EQ(stacks[i].id, push(&fixture, parents[i], frames[i], 0).id);
	CHECK(fixture.interner.count <= STACKS);
	end(&fixture);
}

// What the trace has of stacks: those that were told, and their callers, in that order.
TEST(interner_writes_a_stack_late_only_once_it_is_told)
{
	struct stack none = { 0 }, early, outer, unused, cut;
	struct fixture fixture;
	const struct writer_counts *counts;

	begin(&fixture, 4);
	counts = writer_counts(fixture.writer);
	early = push(&fixture, none, 1, 0);
	CHECK_EQ(1, interner_tell(&fixture.interner, early.id));
	interner_tell_late(&fixture.interner);
	interner_tell_late(&fixture.interner);
	CHECK_EQ(early.id, interner_tell(&fixture.interner, early.id));
	CHECK_EQ(0, interner_tell(&fixture.interner, 0));
	unused = push(&fixture, early, 2, 0);
	cut = push(&fixture, push(&fixture, none, 3, TRACE_STACK_CUT), 4, TRACE_STACK_CUT);
	outer = push(&fixture, early, 3, 0);
	CHECK_EQ(2, counts->stacks);
	CHECK_EQ(2, interner_tell(&fixture.interner, push(&fixture, outer, 4, 0).id) - 1);
	CHECK_EQ(2, interner_tell(&fixture.interner, outer.id));
	CHECK_EQ(4, counts->stacks);
	// Others may be written in between, without a number here.
	CHECK_EQ(4, writer_add_stack(fixture.writer, 0, 1, 0));
	CHECK_EQ(6, interner_tell(&fixture.interner, cut.id));
	CHECK_EQ(6, interner_tell(&fixture.interner, cut.id));
	CHECK_EQ(7, counts->stacks);
	CHECK_EQ(unused.id, push(&fixture, early, 2, 0).id);
	CHECK_EQ(TRACE_STACK_CUT, interner_get(&fixture.interner, cut.id - 1).flags);
	end(&fixture);
}
