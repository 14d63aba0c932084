// The bound holds for every order in which the threads' events of a tick may have happened.
#include "engine/replay/bound.h"
#include "test/test.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, EVENTS = 3 };

struct tick {
	int64_t change[THREADS][EVENTS];
};

// The smallest and the largest peak over all interleavings that keep each thread's order.
struct extremes {
	int64_t smallest, largest;
};

static void explore(const struct tick *tick, const int *done, int64_t level, int64_t peak,
		    struct extremes *found)
{
	bool over = true;

	for (int t = 0; t < THREADS; t++) {
		int next[THREADS];
		int64_t then;

		if (done[t] == EVENTS)
			continue;
		over = false;
		memcpy(next, done, sizeof next);
		next[t]++;
		then = level + tick->change[t][done[t]];
		explore(tick, next, then, then > peak ? then : peak, found);
	}
	if (!over)
		return;
	if (peak < found->smallest)
		found->smallest = peak;
	if (peak > found->largest)
		found->largest = peak;
}

TEST(bound_holds_for_every_interleaving_of_a_tick_and_is_reached_from_above)
{
	srand(12);
	for (int round = 0; round < 300; round++) {
		struct extremes found = { INT64_MAX, 0 };
		struct bound_thread threads[THREADS] = { 0 };
		struct bound_thread first = { 0 };
		struct bound bound = { 0 };
		struct tick tick;
		int done[THREADS] = { 0 };

		for (int t = 0; t < THREADS; t++)
			for (int e = 0; e < EVENTS; e++)
				tick.change[t][e] = rand() % 201 - 100;
		// Enough beforehand that the level cannot fall below 0.
		bound_change(&bound, &first, 1, 1000);
		explore(&tick, done, 1000, 1000, &found);
		for (int e = 0; e < EVENTS; e++)
			for (int t = 0; t < THREADS; t++)
				bound_change(&bound, &threads[t], 2, tick.change[t][e]);
		bound_finish(&bound);

		CHECK((int64_t)bound.low <= found.smallest);
		CHECK_EQ(found.largest, bound.high);
	}
}

TEST(bound_of_one_thread_is_its_peak)
{
	struct bound_thread thread = { 0 };
	struct bound bound = { 0 };
	int64_t level = 0;
	int64_t peak = 0;

	srand(13);
	for (int i = 0; i < 10000; i++) {
		int64_t change = rand() % 1000 - 490;

		if (level + change < 0)
			change = -level;
		level += change;
		if (level > peak)
			peak = level;
		bound_change(&bound, &thread, (uint64_t)i / 7, change);
	}
	bound_finish(&bound);
	CHECK_EQ(peak, bound.low);
	CHECK_EQ(peak, bound.high);
}

TEST(bound_of_threads_in_different_ticks_is_the_peak)
{
	struct bound_thread a = { 0 };
	struct bound_thread b = { 0 };
	struct bound bound = { 0 };

	bound_change(&bound, &a, 1, 100);
	bound_change(&bound, &b, 2, 50);
	bound_change(&bound, &a, 3, -100);
	bound_change(&bound, &b, 4, 70);
	bound_finish(&bound);
	CHECK_EQ(150, bound.low);
	CHECK_EQ(150, bound.high);
}

TEST(bound_of_two_threads_that_swap_in_one_tick_says_both_figures)
{
	struct bound_thread a = { 0 };
	struct bound_thread b = { 0 };
	struct bound bound = { 0 };

	bound_change(&bound, &a, 1, 100);
	// a frees while b allocates: either the level stayed, or it doubled.
	bound_change(&bound, &a, 2, -100);
	bound_change(&bound, &b, 2, 100);
	bound_finish(&bound);
	CHECK_EQ(100, bound.low);
	CHECK_EQ(200, bound.high);
}
