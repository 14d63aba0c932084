// What is allocated at a moment is what was allocated before it and not yet freed.
#include "base/mem.h"
#include "engine/replay/present.h"
#include "test/test.h"
#include "test/unit/assembled.h"
#include "test/unit/present_list.h"

#include <stdio.h>

static const char two_processes[] = "process p pid=1\n"
				    "process c parent=p pid=2 start=fork began=20\n"
				    "thread t p tid=1\n"
				    "thread u c tid=2\n"
				    "heap h p \"pool\"\n"
				    "stack s main\n"
				    "@0 start p\n"
				    "@1 t mmap s 0x100000 0x10000 prot=rw flags=private|anonymous\n"
				    "@2 t malloc s 0x100010 16\n"
				    "@3 t malloc s 0x100030 32\n"
				    "@4 t realloc s 0x100010 -> 0x100060 48\n"
				    "@5 t heap-alloc s h 0x100060 8\n"
				    "@6 t realloc-free 0x100030\n"
				    "@7 t realloc-undo s 0x100030 9999\n"
				    "@20 start c\n"
				    "@21 u free 0x100030\n"
				    "@22 u malloc s 0x100090 5\n"
				    "@23 t malloc s 0x100030 6\n" // its free was not seen
				    "@30 end c exit=0\n"
				    "@31 t heap-reset h\n"
				    "@32 t malloc s 0x1000c0 7\n"
				    "@40 end p exit=0\n"
				    "end\n";

// "100010:16 …"; pools' blocks as "h100010:16", inherited ones as "^100010:16".
static const char *blocks_of(const struct present *present, process_id process)
{
	static char text[512];
	struct present_list list = present_list(present, process);
	const struct present_block *blocks = list.blocks;
	size_t length = 0;

	text[0] = 0;
	for (size_t i = 0; i < list.count; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%llx:%llu",
					   i ? " " : "", blocks[i].heap ? "h" : "",
					   blocks[i].inherited ? "^" : "",
					   (unsigned long long)blocks[i].address,
					   (unsigned long long)blocks[i].size);
	mem_free(list.blocks);
	return text;
}

static struct present *at(struct reader *reader, uint64_t time_ns, process_id inherits)
{
	struct present_options options = {
		.edge = { .time_ns = time_ns },
		.inherits = inherits,
	};

	reader_rewind(reader);
	return present_read(reader, &options);
}

TEST(present_blocks_live_from_their_allocation_to_their_free)
{
	struct reader *reader = assembled_open(two_processes);
	struct present *present = at(reader, 3, TRACE_NONE);

	CHECK_STR("100010:16 100030:32", blocks_of(present, 0));
	present_free(present);
	present = at(reader, 4, TRACE_NONE);
	CHECK_STR("100030:32 100060:48", blocks_of(present, 0));
	present_free(present);
	present = at(reader, 6, TRACE_NONE);
	CHECK_STR("100060:48 h100060:8", blocks_of(present, 0));
	present_free(present);
	present = at(reader, 7, TRACE_NONE);
	CHECK_STR("100030:32 100060:48 h100060:8", blocks_of(present, 0));
	CHECK_EQ(SPACE_ALLOCATOR,
		 ranges_find(space_ranges(present_space(present), 0), 0x100000)->owner);
	present_free(present);
	present = at(reader, 31, TRACE_NONE);
	CHECK_STR("100030:6 100060:48", blocks_of(present, 0));
	present_free(present);
	reader_close(reader);
}

static void check_same(const struct present *dated, const struct present *undated,
		       process_id process, size_t *compared)
{
	struct present_list one = present_list(dated, process);
	struct present_list two = present_list(undated, process);

	CHECK_EQ(one.count, two.count);
	for (size_t i = 0; i < one.count && one.count == two.count; i++, ++*compared) {
		const struct present_block *block = &one.blocks[i], *same = &two.blocks[i];

		CHECK_EQ(block->address, same->address);
		CHECK_EQ(block->size, same->size);
		CHECK_EQ(block->process, same->process);
		CHECK_EQ(block->thread, same->thread);
		CHECK_EQ(block->stack, same->stack);
		CHECK_EQ(block->heap, same->heap);
		CHECK_EQ(block->inherited, same->inherited);
	}
	MEM_FREE(one.blocks, two.blocks);
}

// Who does not ask for times and numbers is told the same of all else.
TEST(present_undated_blocks_are_the_dated_ones)
{
	struct reader *reader = assembled_open(two_processes);
	size_t compared = 0;

	for (uint64_t now = 0; now < 2 * 42; now++) {
		struct present_options options = { .edge = { .time_ns = now / 2 },
						   .inherits = now % 2 ? 1 : TRACE_NONE,
						   .undated = true };
		struct present *dated = at(reader, now / 2, options.inherits), *undated;

		reader_rewind(reader);
		undated = present_read(reader, &options);
		check_same(dated, undated, 0, &compared);
		check_same(dated, undated, 1, &compared);
		present_free(dated);
		present_free(undated);
	}
	CHECK(compared > 100);
	reader_close(reader);
}

TEST(present_a_child_has_its_parents_blocks_only_where_that_is_asked)
{
	struct reader *reader = assembled_open(two_processes);
	struct present *present = at(reader, 22, TRACE_NONE);

	CHECK_STR("100090:5", blocks_of(present, 1));
	present_free(present);
	present = at(reader, 22, 1);
	CHECK_STR("^100060:48 100090:5", blocks_of(present, 1));
	CHECK_STR("100030:32 100060:48 h100060:8", blocks_of(present, 0));
	present_free(present);
	reader_close(reader);
}

TEST(present_exits_end_everything_and_at_exit_nothing_has_ended)
{
	struct present_options options = { .at_exit = true, .inherits = TRACE_NONE };
	struct reader *reader = assembled_open(two_processes);
	struct present *present = at(reader, 40, TRACE_NONE);

	CHECK_STR("", blocks_of(present, 0));
	CHECK_EQ(0, ranges_bytes(space_ranges(present_space(present), 0)));
	present_free(present);
	reader_rewind(reader);
	present = present_read(reader, &options);
	CHECK_STR("100030:6 100060:48 1000c0:7", blocks_of(present, 0));
	CHECK_STR("100090:5", blocks_of(present, 1));
	CHECK_EQ(0x10000, ranges_bytes(space_ranges(present_space(present), 0)));
	CHECK_EQ(40, present_time(present, 0));
	CHECK_EQ(30, present_time(present, 1));
	present_free(present);
	reader_close(reader);
}

TEST(present_an_exact_edge_stops_before_its_event_and_before_an_end_that_stands_there)
{
	struct present_options options = { .inherits = TRACE_NONE };
	struct reader *reader = assembled_open(two_processes);
	struct present *present;

	options.edge = (struct moment_edge){ .number = 2, .exact = true };
	present = present_read(reader, &options);
	CHECK_STR("100010:16", blocks_of(present, 0));
	present_free(present);
	// Behind the last event, which the process's end stands right behind.
	options.edge = (struct moment_edge){ .number = 12, .exact = true };
	reader_rewind(reader);
	present = present_read(reader, &options);
	CHECK_STR("100030:6 100060:48 1000c0:7", blocks_of(present, 0));
	present_free(present);
	reader_close(reader);
}

static bool only_large(void *context, const struct trace_event *event)
{
	(void)context;
	return event->size >= 40;
}

TEST(present_a_query_marks_what_it_selects)
{
	struct query query = { .event = only_large };
	struct present_options options = {
		.query = &query,
		.edge = { .time_ns = 4 },
		.inherits = TRACE_NONE,
	};
	struct reader *reader = assembled_open(two_processes);
	struct present *present = present_read(reader, &options);
	struct present_list list = present_list(present, 0);

	CHECK_EQ(2, list.count);
	CHECK(!list.blocks[0].selected);
	CHECK(list.blocks[1].selected);
	mem_free(list.blocks);
	present_free(present);
	reader_close(reader);
}
