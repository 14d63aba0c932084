// Spikes of a curve, against the definition, the slow way.
#include "base/mem.h"
#include "base/str.h"
#include "engine/prominence.h"
#include "test/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HILLS_MAX = 4096 };

struct hills {
	struct prominence_hill hills[HILLS_MAX];
	size_t count;
};

static void keep(void *context, const struct prominence_hill *hill)
{
	struct hills *hills = context;

	CHECK(hills->count < HILLS_MAX);
	hills->hills[hills->count++] = *hill;
}

static int compare(const void *a, const void *b)
{
	const struct prominence_hill *left = a;
	const struct prominence_hill *right = b;

	if (left->top_edge != right->top_edge)
		return left->top_edge < right->top_edge ? -1 : 1;
	if (left->base != right->base)
		return left->base < right->base ? -1 : 1;
	return 0;
}

static char *describe(struct hills *hills)
{
	struct str text = { 0 };

	qsort(hills->hills, hills->count, sizeof *hills->hills, compare);
	for (size_t i = 0; i < hills->count; i++)
		str_format(&text, "%d@%d-%d-%d%s%d ", (int)hills->hills[i].top,
			   (int)hills->hills[i].top_edge, (int)hills->hills[i].body,
			   (int)hills->hills[i].base, hills->hills[i].spikes > 1 ? "x" : "/",
			   (int)hills->hills[i].spikes);
	str_add(&text, ".");
	return str_take(&text);
}

// The level at edge i is levels[i].
static void one_pass(const uint64_t *levels, size_t count, uint64_t rise_min, struct hills *hills)
{
	struct prominence crest;

	hills->count = 0;
	prominence_init(&crest, rise_min, 0, levels[0], keep, hills);
	for (size_t i = 1; i < count; i++)
		prominence_add(&crest, i, levels[i]);
	prominence_finish(&crest);
	prominence_fini(&crest);
}

// ---- the definition ----

struct slow {
	const uint64_t *levels;
	size_t count;
	uint64_t rise_min;
	struct hills *hills;
};

static uint64_t top_of(const struct slow *slow, size_t from, size_t to, size_t *edge)
{
	*edge = from;
	for (size_t i = from; i < to; i++)
		if (slow->levels[i] > slow->levels[*edge])
			*edge = i;
	return slow->levels[*edge];
}

// The hills above `height` within [from, to) that are told apart there, into `starts`, `ends`.
static size_t parts(const struct slow *slow, size_t from, size_t to, uint64_t height,
		    size_t *starts, size_t *ends)
{
	size_t found = 0;
	size_t edge;

	for (size_t i = from; i < to;) {
		size_t end = i;

		while (end < to && slow->levels[end] > height)
			end++;
		if (end > i && top_of(slow, i, end, &edge) - height >= slow->rise_min) {
			starts[found] = i;
			ends[found++] = end;
		}
		i = end + 1;
	}
	return found;
}

static uint64_t least(const struct slow *slow, size_t from, size_t to)
{
	uint64_t level = slow->levels[from];

	for (size_t i = from; i < to; i++)
		if (slow->levels[i] < level)
			level = slow->levels[i];
	return level;
}

// The hill [from, to), which is above `base`. Adds its spikes, and says where its first and last
// top are.
static void take_apart(const struct slow *slow, size_t from, size_t to, uint64_t base,
		       uint64_t *spikes, size_t *first, size_t *last)
{
	struct prominence_hill hill = { .base = base };
	size_t starts[64], ends[64];
	size_t count = 0;
	uint64_t merge = base;
	size_t edge;

	hill.top = hill.body = top_of(slow, from, to, &edge);
	hill.top_edge = *first = *last = edge;
	for (; merge < hill.top; merge++) {
		count = parts(slow, from, to, merge, starts, ends);
		if (count >= 2)
			break;
	}
	if (count >= 2)
		hill.body = merge;
	for (size_t i = 0; count >= 2 && i < count; i++)
		take_apart(slow, starts[i], ends[i], merge, &hill.spikes, i ? &edge : first, last);
	if (count < 2)
		hill.spikes = 1;
	if (from == 0 && least(slow, 0, *first + 1) > hill.base)
		hill.base = least(slow, 0, *first + 1);
	if (to == slow->count && least(slow, *last, to) > hill.base)
		hill.base = least(slow, *last, to);
	if (hill.body >= hill.base && hill.body - hill.base >= slow->rise_min)
		keep(slow->hills, &hill);
	*spikes += hill.spikes;
}

static void slowly(const uint64_t *levels, size_t count, uint64_t rise_min, struct hills *hills)
{
	struct slow slow = { levels, count, rise_min, hills };

	uint64_t spikes = 0;
	size_t first, last;

	hills->count = 0;
	take_apart(&slow, 0, count, 0, &spikes, &first, &last);
}

// ---- claims ----

static void check(const char *expected, const uint64_t *levels, size_t count, uint64_t rise_min)
{
	struct hills hills;
	char *text;

	one_pass(levels, count, rise_min, &hills);
	text = describe(&hills);
	CHECK_STR(expected, text);
	mem_free(text);
}

#define CURVE(expected, rise_min, ...)                     \
	check(expected, (const uint64_t[]){ __VA_ARGS__ }, \
	      sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), rise_min)

TEST(crest_finds_nothing_in_a_level_that_only_rises_or_falls)
{
	CURVE(".", 1, 0, 1, 5, 5, 9);
	CURVE(".", 1, 9, 5, 5, 0);
	CURVE(".", 1, 7);
}

TEST(crest_measures_a_spike_from_its_higher_shoulder)
{
	CURVE("30@2-30-12/1 .", 2, 10, 20, 30, 12);
	CURVE("30@2-30-10/1 .", 2, 10, 20, 30, 2);
}

TEST(crest_gives_equal_spikes_on_a_plateau_equal_heights)
{
	CURVE("20@2-20-10/1 20@4-20-10/1 20@6-20-10/1 .", 5, 0, 10, 20, 10, 20, 10, 20, 10);
}

TEST(crest_tells_the_plateau_too_if_it_comes_and_goes)
{
	CURVE("20@2-10-0x2 20@2-20-10/1 20@4-20-10/1 .", 5, 0, 10, 20, 10, 20, 10, 0);
}

TEST(crest_ignores_ripples_below_the_least_rise)
{
	CURVE("101@3-101-0/1 .", 5, 0, 100, 98, 101, 97, 99, 0);
}

TEST(crest_keeps_no_memory_of_a_curve_however_many_spikes_it_has)
{
	struct hills *hills = mem_alloc(1, sizeof *hills);
	struct prominence crest;

	prominence_init(&crest, 100, 0, 0, keep, hills);
	for (uint64_t i = 0; i < 1000000; i++) {
		hills->count = 0;
		prominence_add(&crest, 2 * i + 1, i + 200);
		prominence_add(&crest, 2 * i + 2, i + 1);
		CHECK(crest.capacity <= 64);
	}
	prominence_fini(&crest);
	mem_free(hills);
}

TEST(crest_agrees_with_the_definition_on_random_curves)
{
	struct hills fast, slow;
	uint64_t levels[40];

	srand(7);
	for (int round = 0; round < 30000; round++) {
		size_t count = 1 + (size_t)rand() % 40;
		uint64_t rise_min = 1 + (uint64_t)rand() % 6;
		int range = 3 + rand() % 20;
		char *expected, *actual;

		levels[0] = (uint64_t)(rand() % range);
		for (size_t i = 1; i < count; i++)
			levels[i] = rand() % 2 ? (uint64_t)(rand() % range)
					       : levels[i - 1] + (uint64_t)(rand() % 3);
		one_pass(levels, count, rise_min, &fast);
		for (size_t i = 0; i < fast.count; i++) {
			CHECK(fast.hills[i].from < fast.hills[i].top_edge);
			CHECK(levels[fast.hills[i].from] <= fast.hills[i].base);
			CHECK_EQ(fast.hills[i].body, levels[fast.hills[i].body_edge]);
		}
		slowly(levels, count, rise_min, &slow);
		actual = describe(&fast);
		expected = describe(&slow);
		if (strcmp(expected, actual) != 0) {
			for (size_t i = 0; i < count; i++)
				fprintf(stderr, "%d ", (int)levels[i]);
			fprintf(stderr, " least rise %d\n", (int)rise_min);
		}
		CHECK_STR(expected, actual);
		mem_free(expected);
		mem_free(actual);
	}
}
