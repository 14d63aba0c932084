// os/now.h: three clocks in one unit.
#include "os/now.h"
#include "test/test.h"

#include <time.h>

TEST(now_steady_never_goes_back)
{
	uint64_t before = now_steady_ns();

	for (int i = 0; i < 10000; i++) {
		uint64_t now = now_steady_ns();

		CHECK(now >= before);
		before = now;
	}
}

TEST(now_wall_agrees_with_the_calendar)
{
	uint64_t before = (uint64_t)time(NULL);
	uint64_t seconds = now_wall_ns() / 1000000000;

	// time() may lag behind by a tick.
	CHECK(seconds >= before && seconds <= before + 60);
}

TEST(now_cpu_counts_work)
{
	uint64_t before = now_cpu_ns();
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < 1000000; i++)
		sum = sum + i;
	CHECK(now_cpu_ns() > before);
}
