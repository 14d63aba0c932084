// The clock page tells the time, and that the recording is over.
#include "collect/tick.h"
#include "os/now.h"
#include "test/test.h"

#include <time.h>

enum { PERIOD_NS = 100000 };

static void wait_ns(long delay_ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = delay_ns }, NULL);
}

TEST(tick_follows_the_clock)
{
	struct tick tick;
	struct err err;
	uint64_t early_ns, late_ns;

	CHECK(tick_open(&tick, PERIOD_NS, &err));
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
	CHECK(tick_worst_ns(&tick) >= tick_median_ns(&tick) - 500);
	tick_close(&tick);
}

TEST(tick_says_when_the_recording_is_over)
{
	struct tick tick;
	struct err err;

	CHECK(tick_open(&tick, PERIOD_NS, &err));
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

	CHECK(tick_open(&tick, PERIOD_NS, &err));
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
