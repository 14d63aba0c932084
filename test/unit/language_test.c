// Native stacks and a language's lists of frames come to what they come to frame by frame, whatever
// is known of others.
#include "collect/language.h"
#include "test/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAMES = 48, OWN_FROM = 33, STACKS = 400, LISTS = 400, DEPTH_MAX = 2 * (STACKS + LISTS) };

struct fixture {
	int fd;
	struct writer *writer;
	struct interner interner;
	struct language language;
};

static void begin(struct fixture *fixture, bool native)
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
	for (uint32_t i = 0; i < FRAMES; i++)
		CHECK_EQ(i + 1, writer_add_frame(fixture->writer, 0, 0x1000 + i, 0));
	interner_init(&fixture->interner, fixture->writer);
	language_init(&fixture->language, &fixture->interner, native);
}

static void end(struct fixture *fixture)
{
	language_fini(&fixture->language);
	interner_fini(&fixture->interner);
	writer_free(fixture->writer);
	close(fixture->fd);
}

// Frames, outermost first.
struct frames {
	uint32_t at[DEPTH_MAX];
	size_t count;
};

struct stack {
	stack_id id;
	uint64_t hash;
	uint8_t flags;
	struct frames frames;
};

struct list {
	uint32_t node;
	bool cut;
	struct frames frames; // with LANGUAGE_ENTRY
};

static struct stack stacks[STACKS];
static struct list lists[LISTS];

// Some evaluators, some of the interpreter's, some generated, and some of nobody's.
static uint8_t flags_of(uint32_t frame)
{
	if (frame % 5 == 0)
		return LANGUAGE_INTERPRETER | (frame < 16 ? LANGUAGE_EVALUATOR : 0);
	if (frame == 3)
		return LANGUAGE_EVALUATOR;
	return frame % 7 == 0 ? LANGUAGE_GENERATED : 0;
}

static void make_stacks(struct fixture *fixture)
{
	for (size_t i = 0; i < STACKS; i++) {
		struct stack *outer = i < 4 ? NULL : &stacks[(size_t)random() % i];
		frame_id frame = (frame_id)(random() % (OWN_FROM - 1)) + 1;
		struct interner_push push = { .frame = frame };

		if (outer != NULL) {
			stacks[i] = *outer;
		} else {
			stacks[i] = (struct stack){ .flags = i == 0 ? TRACE_STACK_CUT : 0 };
			stacks[i].hash = interner_root(stacks[i].flags);
		}
		stacks[i].hash = interner_hash(stacks[i].hash, frame);
		push.hash = (uint32_t)(stacks[i].hash >> 32);
		stacks[i].id =
			interner_add(&fixture->interner, stacks[i].id, &push, stacks[i].flags);
		stacks[i].frames.at[stacks[i].frames.count++] = frame;
	}
}

static void make_lists(struct fixture *fixture)
{
	for (size_t i = 0; i < LISTS; i++) {
		bool alone = i < 4;
		uint32_t frame = OWN_FROM + (uint32_t)random() % (FRAMES - OWN_FROM);

		if (random() % 16 == 0)
			frame = 0;
		if (random() % 2 == 0)
			frame |= LANGUAGE_ENTRY;
		if (alone)
			lists[i] =
				(struct list){ .node = i == 0 ? LANGUAGE_CUT : 0, .cut = i == 0 };
		else
			lists[i] = lists[(size_t)random() % i];
		lists[i].node = language_push(&fixture->language, lists[i].node, frame);
		lists[i].frames.at[lists[i].frames.count++] = frame;
	}
}

// What begins a group.
static bool begins(const struct list *list, size_t at)
{
	return at == 0 || (list->frames.at[at] & LANGUAGE_ENTRY);
}

// The group that begins there. Returns where the next one does.
static size_t expect_group(struct frames *expected, const struct list *list, size_t at)
{
	do {
		if (list->frames.at[at] & ~LANGUAGE_ENTRY)
			expected->at[expected->count++] = list->frames.at[at] & ~LANGUAGE_ENTRY;
	} while (++at < list->frames.count && !begins(list, at));
	return at;
}

// Frame by frame, from the outermost on. Returns whether there are as many evaluators as groups.
static bool expect(struct frames *expected, const struct stack *stack, const struct list *list,
		   bool native)
{
	size_t groups = 0, evaluators = 0, at = 0;
	bool equal;

	for (size_t i = 0; i < list->frames.count; i++)
		groups += begins(list, i);
	for (size_t i = 0; i < stack->frames.count; i++)
		evaluators += (flags_of(stack->frames.at[i]) & LANGUAGE_EVALUATOR) != 0;
	equal = groups == evaluators;
	expected->count = 0;
	for (; groups > evaluators; groups--)
		at = expect_group(expected, list, at);
	for (size_t i = 0; i < stack->frames.count; i++) {
		uint8_t flags = flags_of(stack->frames.at[i]);
		uint8_t inner = i + 1 < stack->frames.count ? flags_of(stack->frames.at[i + 1]) : 0;
		bool own = (flags & LANGUAGE_INTERPRETER) ||
			   ((flags & LANGUAGE_GENERATED) && (inner & LANGUAGE_EVALUATOR));

		if (native || !own)
			expected->at[expected->count++] = stack->frames.at[i];
		if (!(flags & LANGUAGE_EVALUATOR))
			continue;
		if (groups >= evaluators && at < list->frames.count) {
			at = expect_group(expected, list, at);
			groups--;
		}
		evaluators--;
	}
	return equal;
}

static void check_frames(struct fixture *fixture, const struct frames *expected, uint8_t flags,
			 stack_id id)
{
	for (size_t left = expected->count; left > 0; left--) {
		struct interner_row row = interner_get(&fixture->interner, id);

		CHECK_EQ(expected->at[left - 1], row.frame);
		CHECK_EQ(left > 1, row.parent != 0);
		if (left == 1)
			CHECK_EQ(flags, row.flags);
		id = row.parent;
	}
}

static void check_pairs(bool native, unsigned seed)
{
	static bool seen[STACKS][LISTS];
	static struct frames expected;
	struct fixture fixture;
	uint64_t unsure = 0;

	begin(&fixture, native);
	for (uint32_t frame = 1; frame <= FRAMES; frame++)
		language_mark(&fixture.language, frame, flags_of(frame));
	memset(seen, 0, sizeof seen);
	srandom(seed);
	make_stacks(&fixture);
	make_lists(&fixture);
	for (size_t i = 0; i < 20000; i++) {
		size_t s = (size_t)random() % STACKS, l = (size_t)random() % LISTS;
		const struct stack *stack = &stacks[s];
		const struct list *list = &lists[l];
		stack_id merged = language_merge(&fixture.language, stack->id, list->node);
		uint8_t flags = stack->flags | (list->cut ? TRACE_STACK_CUT : 0);
		bool equal = expect(&expected, stack, list, native);

		if (expected.count == 0)
			CHECK_EQ(stack->id, merged);
		else
			check_frames(&fixture, &expected, flags, merged);
		// Equal stacks, and equal lists, are one number, and so may have been seen before.
		for (size_t at = 0; at < STACKS; at++)
			if (stacks[at].id == stack->id)
				s = at < s ? at : s;
		for (size_t at = 0; at < LISTS; at++)
			if (lists[at].node == list->node)
				l = at < l ? at : l;
		unsure += !seen[s][l] && !equal && !(flags & TRACE_STACK_CUT);
		seen[s][l] = true;
		CHECK_EQ(unsure, fixture.language.unsure);
	}
	end(&fixture);
}

TEST(pairs_of_native_stacks_and_lists_are_put_together_frame_by_frame)
{
	for (unsigned seed = 1; seed <= 5; seed++) {
		check_pairs(false, seed);
		check_pairs(true, seed);
	}
}
