// The clock page tells the time, and that the recording is over.
#include "collect/tick.h"
#include "os/now.h"
#include "test/test.h"
#include "wire/counter.h"

#include <time.h>

enum { PERIOD_NS = 100000, SLACK_NS = 5000 };

static void wait_ns(long delay_ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = delay_ns }, NULL);
}

TEST(tick_follows_the_clock)
{
	struct tick tick;
	struct err err;
	uint64_t early_ns, late_ns;

	CHECK(tick_open(&tick, PERIOD_NS, TICK_THREAD, &err));
	wait_ns(20000000);
	early_ns = atomic_load(&tick.clock->now_ns);
	CHECK(early_ns > 0);
	CHECK(early_ns <= tick_now(&tick));
	wait_ns(20000000);
	late_ns = atomic_load(&tick.clock->now_ns);
	CHECK(late_ns > early_ns);
	CHECK(late_ns <= tick_now(&tick));
	tick_join(&tick);
	CHECK(tick_median_ns(&tick) > 0);
	CHECK(tick_worst_ns(&tick) >= tick_median_ns(&tick) * 31 / 32);
	tick_close(&tick);
}

TEST(tick_counter_tells_the_same_time_as_the_clock)
{
	struct tick tick;
	struct err err;

	CHECK(tick_open(&tick, PERIOD_NS, TICK_ANY, &err));
	if (atomic_load(&tick.clock->counter) == SEGMENT_COUNTER_GOOD) {
		for (int i = 0; i < 100; i++) {
			uint64_t before_ns = tick_now(&tick);
			uint64_t now_ns = counter_convert(tick.clock, counter_read());
			uint64_t after_ns = tick_now(&tick);

			CHECK(now_ns + SLACK_NS >= before_ns);
			CHECK(now_ns <= after_ns + SLACK_NS);
			tick_sleep(&tick, tick_bell(&tick), 300000);
			CHECK(atomic_load(&tick.clock->now_ns) + PERIOD_NS > after_ns);
			CHECK(atomic_load(&tick.clock->now_ns) <= tick_now(&tick));
		}
	}
	tick_stop(&tick);
	CHECK_EQ(SEGMENT_CLOCK_STOP, counter_raise(tick.clock, 12345));
	tick_sleep(&tick, tick_bell(&tick), 1000000);
	CHECK_EQ(SEGMENT_CLOCK_STOP, atomic_load(&tick.clock->now_ns));
	tick_close(&tick);
}

TEST(tick_counter_that_jumps_is_compared_anew)
{
	struct tick tick;
	struct err err;

	CHECK(tick_open(&tick, PERIOD_NS, TICK_ANY, &err));
	if (atomic_load(&tick.clock->counter) == SEGMENT_COUNTER_GOOD) {
		const uint64_t jumps[] = { UINT64_MAX, counter_read() / 2, counter_read() };

		for (size_t i = 0; i < 3; i++) {
			uint64_t before_ns, now_ns;

			tick.first_count = tick.later_count = jumps[i];
			for (int k = 0; k < 4; k++)
				tick_sleep(&tick, tick_bell(&tick), 300000);
			before_ns = tick_now(&tick);
			now_ns = counter_convert(tick.clock, counter_read());
			CHECK(now_ns + SLACK_NS >= before_ns);
			CHECK(now_ns <= tick_now(&tick) + SLACK_NS);
		}
	}
	tick_close(&tick);
}

TEST(tick_never_falls)
{
	struct segment_clock clock = { .now_ns = 500 };

	CHECK_EQ(500, counter_raise(&clock, 499));
	CHECK_EQ(501, counter_raise(&clock, 501));
	CHECK_EQ(501, atomic_load(&clock.now_ns));
}

TEST(tick_lengths_are_counted_to_a_thirty_second)
{
	for (uint64_t ns = 1024; ns < 1ull << 35; ns += ns / 7 + 1) {
		uint64_t middle = counter_place_ns(counter_place(ns));

		CHECK(middle <= ns + ns / 30 && ns <= middle + middle / 30);
	}
	CHECK_EQ(0, counter_place(0));
	CHECK_EQ(SEGMENT_LENGTHS - 1, counter_place(UINT64_MAX));
}

TEST(tick_says_when_the_recording_is_over)
{
	struct tick tick;
	struct err err;

	CHECK(tick_open(&tick, PERIOD_NS, TICK_THREAD, &err));
	tick_stop(&tick);
	CHECK(atomic_load(&tick.clock->now_ns) == SEGMENT_CLOCK_STOP);
	wait_ns(5000000);
	CHECK(atomic_load(&tick.clock->now_ns) == SEGMENT_CLOCK_STOP);
	tick_close(&tick);
}

TEST(tick_does_not_sleep_through_a_bell_that_has_rung)
{
	struct tick tick;
	struct err err;
	uint32_t before;
	uint64_t from_ns;

	CHECK(tick_open(&tick, PERIOD_NS, TICK_THREAD, &err));
	before = tick_bell(&tick);
	tick_ring(&tick);
	CHECK(tick_bell(&tick) != before);
	from_ns = now_steady_ns();
	tick_sleep(&tick, before, 10000000000);
	CHECK(now_steady_ns() - from_ns < 5000000000);
	tick_sleep(&tick, tick_bell(&tick), 1000000); // nobody rings: the time runs out
	tick_close(&tick);
}

TEST(tick_close_accepts_what_was_never_opened)
{
	struct tick tick = { 0 };

	tick_close(&tick);
	CHECK(tick.clock == NULL);
}
