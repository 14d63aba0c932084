// What docs/format.md section 5.12 promises about what was reachable.
#include "test/test.h"
#include "trace/reach.h"

static const struct reach_known known = { .processes_count = 4,
					  .threads_count = 3,
					  .stacks_count = 10 };

static struct trace_reach_block blocks[] = {
	{ 0x1000, 0, 1, 0, TRACE_REACH_REACHABLE, TRACE_REACH_REGISTER, 0, 0, 4242 },
	{ 0x1010, 24, 0, 0, TRACE_REACH_INSIDE, TRACE_REACH_BLOCK, 0, 0, 0x1000 },
	{ 0x2000, 1 << 20, 9, 2, TRACE_REACH_UNREACHABLE, TRACE_REACH_NOWHERE, 0, 0, 0 },
	{ UINT64_MAX - 8, UINT64_MAX, 3, 1, TRACE_REACH_HELD, TRACE_REACH_OTHER, 0, 0, UINT64_MAX },
};

static struct trace_reach sample(void)
{
	return (struct trace_reach){
		.process = 3,
		.reason = TRACE_SNAPSHOT_EXIT,
		.flags = TRACE_REACH_PARTIAL,
		.time_ns = 77,
		.number = UINT64_MAX,
		.stopped_ns = 5,
		.read_bytes = 6,
		.total = 4,
		.count = 4,
		.blocks = blocks,
	};
}

static bool decode(const struct bytes *bytes, size_t size, struct trace_reach *reach)
{
	const uint8_t *copy = test_guarded_copy(bytes->data, size);

	return reach_decode(bytes_cursor(copy, size), &known, true, reach);
}

TEST(reach_comes_back_as_it_was_in_parts)
{
	struct trace_reach put = sample(), got;
	struct bytes bytes = { 0 };

	reach_encode(&bytes, &put, 1, 3);
	CHECK(decode(&bytes, bytes.size, &got));
	CHECK_EQ(put.process, got.process);
	CHECK_EQ(put.flags, got.flags);
	CHECK_EQ(put.number, got.number);
	CHECK_EQ(put.stopped_ns, got.stopped_ns);
	CHECK_EQ(put.read_bytes, got.read_bytes);
	CHECK_EQ(1, got.first);
	CHECK_EQ(3, got.count);
	CHECK_EQ(4, got.total);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(blocks[i + 1].address, got.blocks[i].address);
		CHECK_EQ(blocks[i + 1].size, got.blocks[i].size);
		CHECK_EQ(blocks[i + 1].stack, got.blocks[i].stack);
		CHECK_EQ(blocks[i + 1].thread, got.blocks[i].thread);
		CHECK_EQ(blocks[i + 1].state, got.blocks[i].state);
		CHECK_EQ(blocks[i + 1].place, got.blocks[i].place);
		CHECK_EQ(blocks[i + 1].at, got.blocks[i].at);
	}
	reach_fini(&got);
	bytes_fini(&bytes);
}

TEST(reach_that_is_cut_anywhere_is_refused)
{
	struct trace_reach put = sample(), got;
	struct bytes bytes = { 0 };

	reach_encode(&bytes, &put, 0, 4);
	for (size_t size = 0; size < bytes.size; size++)
		CHECK(!decode(&bytes, size, &got));
	bytes_fini(&bytes);
}

TEST(reach_names_nothing_that_is_not_there)
{
	struct {
		struct trace_reach_block block;
		bool good;
	} cases[] = {
		{ { 8, 8, 9, 2, 4, 6, 0, 0, 1 }, true },  { { 8, 8, 10, 2, 4, 6, 0, 0, 1 }, false },
		{ { 8, 8, 9, 3, 4, 6, 0, 0, 1 }, false }, { { 8, 8, 9, 2, 5, 6, 0, 0, 1 }, false },
		{ { 8, 8, 9, 2, 0, 6, 0, 0, 1 }, false }, { { 8, 8, 9, 2, 4, 7, 0, 0, 1 }, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace_reach put = sample(), got;
		struct bytes bytes = { 0 };

		put.blocks = &cases[i].block;
		put.count = put.total = 1;
		reach_encode(&bytes, &put, 0, 1);
		CHECK_EQ(cases[i].good, decode(&bytes, bytes.size, &got));
		reach_fini(&got);
		bytes_fini(&bytes);
	}
}
