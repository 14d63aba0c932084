// Spans join where they touch, are cut where a part goes, and tell their gaps.
#include "import/spans.h"
#include "test/test.h"

TEST(spans_join_and_are_cut)
{
	struct spans spans = { 0 };
	uint64_t at = 0;

	spans_add(&spans, 10, 20);
	spans_add(&spans, 30, 40);
	spans_add(&spans, 20, 30);
	CHECK_EQ(1, spans.count);
	spans_remove(&spans, 15, 35);
	CHECK_EQ(2, spans.count);
	CHECK_EQ(10, spans_gap(&spans, &at, 100));
	CHECK_EQ(0, at);
	at = 12;
	CHECK_EQ(20, spans_gap(&spans, &at, 100));
	CHECK_EQ(15, at);
	at = 36;
	CHECK_EQ(0, spans_gap(&spans, &at, 40));
	spans_remove(&spans, 0, 100);
	CHECK_EQ(0, spans.count);
	spans_remove(&spans, 0, 100);
	spans_add(&spans, 5, 5);
	CHECK_EQ(0, spans.count);
	spans_fini(&spans);
}
