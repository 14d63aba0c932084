#include "collect/tick.h"

#include "os/now.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static void count_length(struct tick *tick, uint64_t length_ns)
{
	uint64_t bucket = length_ns / 1000;

	tick->lengths[bucket < TICK_BUCKETS ? bucket : TICK_BUCKETS - 1]++;
	if (length_ns > tick->worst_ns)
		tick->worst_ns = length_ns;
}

static void *tick_main(void *argument)
{
	struct tick *tick = argument;
	uint64_t began_ns = tick->clock->began_ns;
	uint64_t last_ns = now_steady_ns();
	uint64_t deadline_ns = last_ns;

	prctl(PR_SET_TIMERSLACK, 1);
	prctl(PR_SET_NAME, "tidemark-tick");
	while (!atomic_load_explicit(&tick->quitting, memory_order_relaxed)) {
		struct timespec until;
		uint64_t now_ns;

		if (atomic_load_explicit(&tick->stopping, memory_order_relaxed)) {
			atomic_store(&tick->clock->now_ns, SEGMENT_CLOCK_STOP);
			return NULL;
		}
		now_ns = now_steady_ns();
		atomic_store_explicit(&tick->clock->now_ns, now_ns - began_ns,
				      memory_order_release);
		if (now_ns != last_ns)
			count_length(tick, now_ns - last_ns);
		last_ns = now_ns;
		deadline_ns += tick->period_ns;
		if (deadline_ns < now_ns)
			deadline_ns = now_ns + tick->period_ns;
		until.tv_sec = (time_t)(deadline_ns / 1000000000);
		until.tv_nsec = (long)(deadline_ns % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	return NULL;
}

bool tick_open(struct tick *tick, uint64_t period_ns, struct err *err)
{
	int number;

	memset(tick, 0, sizeof *tick);
	tick->period_ns = period_ns;
	tick->fd = memfd_create("tidemark-clock", MFD_CLOEXEC);
	if (tick->fd < 0)
		return err_errno(err, errno, "cannot make the clock page");
	if (ftruncate(tick->fd, PAGE_BYTES) != 0) {
		err_errno(err, errno, "cannot size the clock page");
		close(tick->fd);
		return false;
	}
	tick->clock = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tick->fd, 0);
	if (tick->clock == MAP_FAILED) {
		tick->clock = NULL;
		err_errno(err, errno, "cannot map the clock page");
		close(tick->fd);
		return false;
	}
	tick->clock->magic = SEGMENT_MAGIC;
	tick->clock->version = SEGMENT_VERSION;
	tick->clock->began_ns = now_steady_ns();
	number = pthread_create(&tick->thread, NULL, tick_main, tick);
	if (number != 0) {
		munmap(tick->clock, PAGE_BYTES);
		tick->clock = NULL;
		close(tick->fd);
		return err_errno(err, number, "cannot start the clock");
	}
	return true;
}

void tick_join(struct tick *tick)
{
	if (tick->clock == NULL || tick->period_ns == 0)
		return;
	atomic_store(&tick->quitting, true);
	pthread_join(tick->thread, NULL);
	tick->period_ns = 0;
}

void tick_close(struct tick *tick)
{
	if (tick->clock == NULL)
		return;
	tick_join(tick);
	munmap(tick->clock, PAGE_BYTES);
	close(tick->fd);
	tick->clock = NULL;
}

uint64_t tick_now(const struct tick *tick)
{
	return now_steady_ns() - tick->clock->began_ns;
}

void tick_stop(struct tick *tick)
{
	atomic_store(&tick->stopping, true);
	while (tick->period_ns != 0 && atomic_load(&tick->clock->now_ns) != SEGMENT_CLOCK_STOP)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

uint64_t tick_median_ns(const struct tick *tick)
{
	uint64_t total = 0, below = 0;

	for (size_t i = 0; i < TICK_BUCKETS; i++)
		total += tick->lengths[i];
	for (size_t i = 0; i < TICK_BUCKETS; i++) {
		below += tick->lengths[i];
		if (below * 2 > total)
			return i * 1000 + 500;
	}
	return 0;
}

uint64_t tick_worst_ns(const struct tick *tick)
{
	return tick->worst_ns;
}

void tick_ring(struct tick *tick)
{
	atomic_fetch_add(&tick->clock->bell, 1);
	syscall(SYS_futex, &tick->clock->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t tick_bell(const struct tick *tick)
{
	return atomic_load(&tick->clock->bell);
}

void tick_sleep(struct tick *tick, uint32_t seen, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000),
		.tv_nsec = (long)(timeout_ns % 1000000000),
	};

	syscall(SYS_futex, &tick->clock->bell, FUTEX_WAIT, seen, &timeout, NULL, 0);
}
