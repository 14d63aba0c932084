// An address space of ranges behaves like an array of pages, one by one.
#include "engine/space/ranges.h"
#include "test/test.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, PAGES = 300 };

static struct range range_of_pages(unsigned from, unsigned to, uint64_t number)
{
	return (struct range){
		.start = (uint64_t)from * PAGE,
		.end = (uint64_t)to * PAGE,
		.number = number,
	};
}

TEST(ranges_an_empty_space_is_one_hole)
{
	struct ranges ranges = { 0 };
	struct ranges_holes holes = ranges_holes(&ranges, 0x1000, 0x9000);

	CHECK(!ranges_find(&ranges, 0));
	CHECK(!ranges_from(&ranges, 0));
	CHECK(!ranges_before(&ranges, UINT64_MAX));
	CHECK_EQ(1, holes.count);
	CHECK_EQ(0x8000, holes.bytes);
	CHECK_EQ(0x8000, holes.largest);
	CHECK_EQ(0x1000, holes.largest_at);
	CHECK_EQ(0, ranges_holes(&ranges, 5, 5).count);
	ranges_fini(&ranges);
}

TEST(ranges_the_ends_of_the_address_space_can_be_used)
{
	struct ranges ranges = { 0 };
	struct range low = { .start = 0, .end = PAGE };
	struct range high = { .start = UINT64_MAX - PAGE, .end = UINT64_MAX };

	ranges_insert(&ranges, &high);
	ranges_insert(&ranges, &low);
	CHECK_EQ(0, ranges_find(&ranges, 0)->start);
	CHECK(ranges_find(&ranges, UINT64_MAX - 1) != NULL);
	CHECK(!ranges_find(&ranges, UINT64_MAX));
	CHECK_EQ(1, ranges_holes(&ranges, 0, UINT64_MAX).count);
	ranges_fini(&ranges);
}

TEST(ranges_a_cut_keeps_the_place_in_the_file_and_a_join_undoes_it)
{
	struct ranges ranges = { 0 };
	struct range range = range_of_pages(4, 8, 1);

	range.file = 3;
	range.offset = 2 * PAGE;
	ranges_insert(&ranges, &range);
	ranges_cut(&ranges, 6 * PAGE);
	CHECK_EQ(2, ranges.used);
	CHECK_EQ(4 * PAGE, ranges_find(&ranges, 6 * PAGE)->offset);
	CHECK(ranges_join(&ranges, 6 * PAGE));
	CHECK_EQ(1, ranges.used);
	CHECK_EQ(2 * PAGE, ranges_find(&ranges, 7 * PAGE)->offset);

	ranges_cut(&ranges, 6 * PAGE);
	ranges_find(&ranges, 6 * PAGE)->protection = 1;
	CHECK(!ranges_join(&ranges, 6 * PAGE));
	CHECK(!ranges_join(&ranges, 5 * PAGE));
	ranges_fini(&ranges);
}

static struct ranges_holes holes_of_list(const uint64_t *pages, unsigned low, unsigned high)
{
	struct ranges_holes holes = { 0 };
	unsigned run = 0;

	for (unsigned i = low; i < high; i++) {
		run = pages[i] ? 0 : run + 1;
		if (!run)
			continue;
		holes.count += run == 1;
		holes.bytes += PAGE;
		if ((uint64_t)run * PAGE > holes.largest) {
			holes.largest = (uint64_t)run * PAGE;
			holes.largest_at = (uint64_t)(i + 1 - run) * PAGE;
		}
	}
	return holes;
}

static void check_against(const struct ranges *ranges, const uint64_t *pages)
{
	unsigned low = (unsigned)rand() % PAGES;
	unsigned high = low + (unsigned)rand() % (PAGES - low + 1);
	unsigned page = (unsigned)rand() % PAGES;
	struct ranges_holes real =
		ranges_holes(ranges, (uint64_t)low * PAGE, (uint64_t)high * PAGE);
	struct ranges_holes wanted = holes_of_list(pages, low, high);
	const struct range *found = ranges_find(ranges, (uint64_t)page * PAGE + 17);

	CHECK_EQ(wanted.count, real.count);
	CHECK_EQ(wanted.bytes, real.bytes);
	CHECK_EQ(wanted.largest, real.largest);
	if (wanted.largest)
		CHECK_EQ(wanted.largest_at, real.largest_at);
	CHECK_EQ(pages[page], found ? found->number : 0);
}

// Unmap some pages, then map some of them, cut at random places, again and again.
TEST(ranges_agree_with_an_array_of_pages_through_a_long_random_life)
{
	static uint64_t pages[PAGES]; // 0: free, else the number of the range
	struct ranges ranges = { 0 };
	struct ranges copy = { 0 };
	uint64_t at = 0;

	srand(1971);
	for (unsigned step = 1; step <= 40000; step++) {
		unsigned low = (unsigned)rand() % PAGES;
		unsigned high = low + 1 + (unsigned)rand() % (rand() % 8 ? 6 : 60);
		struct range range;
		const struct range *next;

		if (high > PAGES)
			high = PAGES;
		range = range_of_pages(low, high, step);
		ranges_cut(&ranges, range.start);
		ranges_cut(&ranges, range.end);
		while ((next = ranges_from(&ranges, range.start)) && next->start < range.end)
			ranges_remove(&ranges, next->start);
		memset(pages + low, 0, (high - low) * sizeof *pages);
		if (rand() % 2) {
			ranges_insert(&ranges, &range);
			for (unsigned i = low; i < high; i++)
				pages[i] = step;
		}
		check_against(&ranges, pages);
	}
	ranges_copy(&copy, &ranges);
	ranges_fini(&ranges);
	for (int i = 0; i < 100; i++)
		check_against(&copy, pages);
	for (const struct range *next; (next = ranges_from(&copy, at)); at = next->end)
		CHECK(next->start >= at && next->end > next->start);
	ranges_fini(&copy);
}

// A tree that were not balanced would take minutes.
TEST(ranges_in_rising_order_stay_quick)
{
	enum { COUNT = 1 << 17 };
	struct ranges ranges = { 0 };

	for (unsigned i = 0; i < COUNT; i++) {
		struct range range = range_of_pages(2 * i, 2 * i + 1, i);

		ranges_insert(&ranges, &range);
	}
	CHECK_EQ(COUNT - 1, ranges_holes(&ranges, 0, (2ull * COUNT - 1) * PAGE).count);
	for (unsigned i = 0; i < COUNT; i++)
		ranges_remove(&ranges, 2ull * i * PAGE);
	CHECK_EQ(0, ranges.used);
	ranges_fini(&ranges);
}
