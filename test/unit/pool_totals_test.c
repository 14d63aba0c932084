// What a pool has taken, given back and held.
#include "engine/replay/pool_totals.h"
#include "test/test.h"

static void add(struct pool_totals *totals, heap_id heap, enum trace_kind kind, uint64_t address,
		uint64_t size, uint64_t time_ns)
{
	const struct trace_event event = { .kind = (uint8_t)kind,
					   .heap = heap,
					   .address = address,
					   .size = size,
					   .time_ns = time_ns };

	CHECK(pool_totals_wants(&event));
	pool_totals_add(totals, &event);
}

TEST(pools_are_counted_apart)
{
	struct pool_totals *totals = pool_totals_new();
	const struct pool_total *total;

	add(totals, 3, TRACE_HEAP_ALLOC, 16, 100, 1);
	add(totals, 5, TRACE_HEAP_ALLOC, 16, 7, 2);
	add(totals, 3, TRACE_HEAP_ALLOC, 32, 50, 3);
	add(totals, 3, TRACE_HEAP_FREE, 16, 0, 4);
	add(totals, 3, TRACE_HEAP_FREE, 16, 0, 5);
	add(totals, 3, TRACE_HEAP_ALLOC, 48, 60, 6);
	total = pool_totals_get(totals, 3);
	CHECK(total->used);
	CHECK_EQ(3, total->allocated.count);
	CHECK_EQ(210, total->allocated.bytes);
	CHECK_EQ(1, total->frees);
	CHECK_EQ(1, total->unknown_frees);
	CHECK_EQ(150, total->peak.bytes);
	CHECK_EQ(2, total->peak.count);
	CHECK_EQ(3, total->peak_ns);
	CHECK_EQ(110, total->live.bytes);
	CHECK_EQ(7, pool_totals_get(totals, 5)->live.bytes);
	CHECK(!pool_totals_get(totals, 4)->used);
	CHECK(!pool_totals_get(totals, 1000)->used);
	pool_totals_free(totals);
}

TEST(a_reset_ends_all_blocks_of_its_pool)
{
	struct pool_totals *totals = pool_totals_new();

	add(totals, 1, TRACE_HEAP_ALLOC, 16, 100, 1);
	add(totals, 2, TRACE_HEAP_ALLOC, 16, 100, 1);
	add(totals, 1, TRACE_HEAP_RESET, 0, 0, 2);
	add(totals, 1, TRACE_HEAP_FREE, 16, 0, 3);
	CHECK_EQ(0, pool_totals_get(totals, 1)->live.count);
	CHECK_EQ(1, pool_totals_get(totals, 1)->resets);
	CHECK_EQ(1, pool_totals_get(totals, 1)->unknown_frees);
	CHECK_EQ(1, pool_totals_get(totals, 2)->live.count);
	pool_totals_free(totals);
}

TEST(an_address_that_is_given_out_again_was_freed)
{
	struct pool_totals *totals = pool_totals_new();

	add(totals, 1, TRACE_HEAP_ALLOC, 16, 100, 1);
	add(totals, 1, TRACE_HEAP_ALLOC, 16, 30, 2);
	CHECK_EQ(30, pool_totals_get(totals, 1)->live.bytes);
	CHECK_EQ(100, pool_totals_get(totals, 1)->peak.bytes);
	CHECK_EQ(2, pool_totals_get(totals, 1)->allocated.count);
	pool_totals_free(totals);
	pool_totals_free(NULL);
}
