// What a pool has taken, given back and held.
#include "engine/replay/pool_totals.h"
#include "test/unit/assembled.h"

static struct pool_totals *read_calls(struct reader **reader, const char *calls)
{
	char text[1024];
	struct pool_totals *totals;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;

	snprintf(text, sizeof text,
		 "process p pid=1\nthread t p tid=1\nheap a p \"a\"\nheap b p \"b\"\n"
		 "heap c p \"c\"\nstack s main\n%send\n",
		 calls);
	*reader = assembled_open(text);
	totals = pool_totals_new(*reader);
	reader_rewind(*reader);
	while ((item = reader_next(*reader, &event, &note)) != READER_END)
		if (item == READER_EVENT && trace_kind_is_pool(event.kind))
			pool_totals_add(totals, &event);
	return totals;
}

static void close_both(struct reader *reader, struct pool_totals *totals)
{
	pool_totals_free(totals);
	reader_close(reader);
}

TEST(pools_are_counted_apart)
{
	struct reader *reader;
	struct pool_totals *totals = read_calls(&reader, "@1 t heap-alloc s a 0x10 100\n"
							 "@2 t heap-alloc s b 0x10 7\n"
							 "@3 t heap-alloc s a 0x20 50\n"
							 "@4 t heap-free a 0x10\n"
							 "@5 t heap-free a 0x10\n"
							 "@6 t heap-alloc s a 0x30 60\n");
	const struct pool_total *total = pool_totals_get(totals, 1);

	CHECK(total->used);
	CHECK_EQ(3, total->allocated.count);
	CHECK_EQ(210, total->allocated.bytes);
	CHECK_EQ(1, total->frees);
	CHECK_EQ(1, total->unknown_frees);
	CHECK_EQ(150, total->peak.bytes);
	CHECK_EQ(2, total->peak.count);
	CHECK_EQ(3, total->peak_ns);
	CHECK_EQ(110, total->live.bytes);
	CHECK_EQ(7, pool_totals_get(totals, 2)->live.bytes);
	CHECK(!pool_totals_get(totals, 3)->used);
	CHECK(!pool_totals_get(totals, 1000)->used);
	close_both(reader, totals);
}

TEST(a_reset_ends_all_blocks_of_its_pool)
{
	struct reader *reader;
	struct pool_totals *totals = read_calls(&reader, "@1 t heap-alloc s a 0x10 100\n"
							 "@1 t heap-alloc s b 0x10 100\n"
							 "@2 t heap-reset a\n"
							 "@3 t heap-free a 0x10\n");

	CHECK_EQ(0, pool_totals_get(totals, 1)->live.count);
	CHECK_EQ(0, pool_totals_get(totals, 1)->live.bytes);
	CHECK_EQ(0, pool_totals_get(totals, 1)->frees);
	CHECK_EQ(1, pool_totals_get(totals, 1)->resets);
	CHECK_EQ(1, pool_totals_get(totals, 1)->unknown_frees);
	CHECK_EQ(1, pool_totals_get(totals, 2)->live.count);
	close_both(reader, totals);
}

TEST(an_address_that_is_given_out_again_was_freed)
{
	struct reader *reader;
	struct pool_totals *totals =
		read_calls(&reader, "@1 t heap-alloc s a 0x10 100\n@2 t heap-alloc s a 0x10 30\n");

	CHECK_EQ(30, pool_totals_get(totals, 1)->live.bytes);
	CHECK_EQ(100, pool_totals_get(totals, 1)->peak.bytes);
	CHECK_EQ(2, pool_totals_get(totals, 1)->allocated.count);
	close_both(reader, totals);
	pool_totals_free(NULL);
}
