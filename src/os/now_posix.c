// CLOCK_MONOTONIC is also the guest's clock, so its times and ours can be compared. It stands still
// while the machine sleeps; a recording over a suspend is as long as the machine was awake. A sleep
// that a signal ends early is not slept on: callers look at the clock themselves.
#include "os/now.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec time = { 0 };

	clock_gettime(id, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t now_steady_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t now_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t now_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void now_sleep(uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&time, NULL);
}

void now_sleep_until(uint64_t steady_ns)
{
	struct timespec time = { (time_t)(steady_ns / 1000000000), (long)(steady_ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}
