// A nest answers as a search through all its ranges would.
#include "symbols/nest.h"
#include "test/test.h"

#include <string.h>

enum { RANGES_MAX = 60, SPACE = 80 };

static bool is_better(const struct nest_range *a, const struct nest_range *b)
{
	if (a->depth != b->depth)
		return a->depth > b->depth;
	if (a->start != b->start)
		return a->start > b->start;
	if (a->end != b->end)
		return a->end < b->end;
	return a->value < b->value;
}

// The long way.
static const struct nest_range *search(const struct nest_range *ranges, size_t count, uint64_t at)
{
	const struct nest_range *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (ranges[i].start <= at && at < ranges[i].end &&
		    (!best || is_better(&ranges[i], best)))
			best = &ranges[i];
	return best;
}

TEST(a_nest_of_random_ranges_answers_as_a_full_search)
{
	uint64_t state = 1;

	for (int round = 0; round < 3000; round++) {
		struct nest_range ranges[RANGES_MAX], sorted[RANGES_MAX];
		struct nest nest;
		size_t count;

		state = state * 6364136223846793005u + 1442695040888963407u;
		count = (state >> 33) % RANGES_MAX;
		for (size_t i = 0; i < count; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			ranges[i].start = (state >> 20) % SPACE;
			// Some are empty, some backwards.
			ranges[i].end = ranges[i].start + (state >> 30) % 20 - 1;
			ranges[i].depth = (uint32_t)(state >> 40) % 3;
			ranges[i].value = (uint32_t)i;
		}
		memcpy(sorted, ranges, sizeof ranges);
		nest_build(&nest, sorted, count);
		for (uint64_t at = 0; at < SPACE + 20; at++) {
			const struct nest_range *expected = search(ranges, count, at);
			uint32_t value = UINT32_MAX;

			CHECK_EQ(expected != NULL, nest_find(&nest, at, &value));
			if (expected)
				CHECK_EQ(expected->value, value);
		}
		nest_fini(&nest);
	}
}

TEST(an_empty_nest_knows_nothing)
{
	struct nest nest = { 0 };
	uint32_t value;

	CHECK(!nest_find(&nest, 0, &value));
	nest_build(&nest, NULL, 0);
	CHECK(!nest_find(&nest, 0, &value));
	nest_fini(&nest);
}

TEST(a_range_may_reach_the_last_address)
{
	struct nest_range range = { UINT64_MAX - 4, UINT64_MAX, 0, 7 };
	struct nest nest;
	uint32_t value;

	nest_build(&nest, &range, 1);
	CHECK(nest_find(&nest, UINT64_MAX - 1, &value));
	CHECK_EQ(7, value);
	CHECK(!nest_find(&nest, UINT64_MAX, &value));
	CHECK(!nest_find(&nest, UINT64_MAX - 5, &value));
	nest_fini(&nest);
}
