#include "collect/tick.h"

#include "os/now.h"
#include "wire/counter.h"

#include <cpuid.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	COMPARISONS = 3,
	BASE_MIN_NS = 100000, // a rate from less would be worth little
	BASE_MAX_NS = 1000000000,
	RATE_JUMP = 128, // a rate that differs by more than a 128th is of another counter
};

// ---- By a thread ----------------------------------------------------------------------------

static void count_length(struct segment_clock *clock, uint64_t length_ns)
{
	atomic_fetch_add(&clock->lengths[counter_place(length_ns)], 1);
	if (length_ns > atomic_load(&clock->worst_ns))
		atomic_store(&clock->worst_ns, length_ns);
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
			count_length(tick->clock, now_ns - last_ns);
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

static bool start_thread(struct tick *tick, struct err *err)
{
	int number;

	atomic_store(&tick->clock->counter, SEGMENT_COUNTER_BAD);
	number = pthread_create(&tick->thread, NULL, tick_main, tick);
	if (number != 0)
		return err_errno(err, number, "cannot start the clock");
	tick->threaded = true;
	return true;
}

// ---- By the counter -------------------------------------------------------------------------

// The counter runs at one speed in all processors and at all times, says the processor; and the
// system, which has watched it, keeps its own clock by it.
static bool counter_is_good(void)
{
	static const char *const names[] = { "tsc\n", "kvm-clock\n",
					     "hyperv_clocksource_tsc_page\n" };
	unsigned a, b, c, d;
	char text[64] = "";
	FILE *file;
	bool good = false;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8))
		return false;
	file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (file == NULL)
		return false;
	if (fgets(text, sizeof text, file) != NULL)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			good = good || strcmp(text, names[i]) == 0;
	fclose(file);
	return good;
}

// The counter and the clock at one moment: the nearest of a few tries.
static void compare(const struct tick *tick, uint64_t *count, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	*count = *ns = 0;
	for (int i = 0; i < COMPARISONS; i++) {
		uint64_t before = counter_read();
		uint64_t now_ns = tick_now(tick);
		uint64_t after = counter_read();

		if (after - before < best) {
			best = after - before;
			*count = before + best / 2;
			*ns = now_ns;
		}
	}
}

// From here on the counter is compared with what it is now.
static void compare_anew(struct tick *tick, uint64_t count, uint64_t ns)
{
	tick->first_count = tick->later_count = count;
	tick->first_ns = tick->later_ns = ns;
}

// Nanoseconds for each count, 32 bits behind the point. A machine that slept, or was moved, finds
// its counter set back or far ahead: what was known goes on until there is something to compare.
static uint64_t find_rate(struct tick *tick, uint64_t count, uint64_t ns)
{
	uint64_t known = tick->rate;
	uint64_t rate;

	if (count > tick->first_count && ns - tick->first_ns < BASE_MIN_NS)
		return known;
	if (count > tick->first_count) {
		rate = (uint64_t)(((unsigned __int128)(ns - tick->first_ns) << 32) /
				  (count - tick->first_count));
		if (!tick->rate_settled ||
		    (rate < known + known / RATE_JUMP && rate > known - known / RATE_JUMP)) {
			tick->rate_settled = true;
			return tick->rate = rate;
		}
	}
	compare_anew(tick, count, ns);
	tick->rate_settled = false;
	return known;
}

static void beat(struct tick *tick)
{
	struct segment_clock *clock = tick->clock;
	uint32_t number = atomic_load(&clock->beats) + 1;
	struct segment_beat *beat = &clock->beat[number & 1];
	uint64_t count, ns, rate;

	if (tick->threaded) {
		atomic_store(&clock->beats, number);
		return;
	}
	compare(tick, &count, &ns);
	rate = find_rate(tick, count, ns);
	if (rate == 0)
		return;
	atomic_store(&beat->count, count);
	atomic_store(&beat->ns, ns);
	atomic_store(&beat->rate, rate);
	atomic_store(&clock->beats, number);
	atomic_store(&clock->counter, SEGMENT_COUNTER_GOOD);
	counter_raise(clock, ns - ns % tick->period_ns);
	// The clock is pulled right now and then: compare with what is a second or two old.
	if (ns - tick->later_ns > BASE_MAX_NS) {
		tick->first_count = tick->later_count;
		tick->first_ns = tick->later_ns;
		tick->later_count = count;
		tick->later_ns = ns;
	}
}

// ---- The page -------------------------------------------------------------------------------

static bool make_page(struct tick *tick, struct err *err)
{
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
	tick->clock->tick_ns = tick->period_ns;
	return true;
}

bool tick_open(struct tick *tick, uint64_t period_ns, enum tick_source source, struct err *err)
{
	memset(tick, 0, sizeof *tick);
	tick->period_ns = period_ns;
	if (!make_page(tick, err))
		return false;
	if (source == TICK_ANY && counter_is_good()) {
		uint64_t count, ns;

		compare(tick, &count, &ns);
		compare_anew(tick, count, ns);
		// So that the first guest finds a rate.
		nanosleep(&(struct timespec){ .tv_nsec = BASE_MIN_NS }, NULL);
		beat(tick);
	} else if (!start_thread(tick, err)) {
		munmap(tick->clock, PAGE_BYTES);
		tick->clock = NULL;
		close(tick->fd);
		return false;
	}
	return true;
}

void tick_join(struct tick *tick)
{
	if (tick->clock == NULL || !tick->threaded)
		return;
	atomic_store(&tick->quitting, true);
	pthread_join(tick->thread, NULL);
	tick->threaded = false;
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
	if (!tick->threaded) {
		atomic_store(&tick->clock->now_ns, SEGMENT_CLOCK_STOP);
		return;
	}
	atomic_store(&tick->stopping, true);
	while (atomic_load(&tick->clock->now_ns) != SEGMENT_CLOCK_STOP)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

uint64_t tick_median_ns(const struct tick *tick)
{
	uint64_t total = 0, below = 0;

	for (uint32_t i = 0; i < SEGMENT_LENGTHS; i++)
		total += atomic_load(&tick->clock->lengths[i]);
	for (uint32_t i = 0; i < SEGMENT_LENGTHS; i++) {
		below += atomic_load(&tick->clock->lengths[i]);
		if (below * 2 > total)
			return counter_place_ns(i);
	}
	return 0;
}

uint64_t tick_worst_ns(const struct tick *tick)
{
	return atomic_load(&tick->clock->worst_ns);
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

	beat(tick);
	syscall(SYS_futex, &tick->clock->bell, FUTEX_WAIT, seen, &timeout, NULL, 0);
	beat(tick);
}
