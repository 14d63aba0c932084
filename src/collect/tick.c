// What a beat says. For example, the counter runs at 2.4 GHz, and when the page is made it is at
// 1,000,000,000 with the clock at 0 ns. 100 us later it is at 1,000,240,000. The rate is 100,000 *
// 2^32 / 240,000 = 1,789,569,706 (nanoseconds for each count, 32 bits after the point), and the
// beat says: count 1,000,240,000 is 100,000 ns, with that rate. A guest that reads 1,000,264,000
// makes of it 100,000 + (24,000 * rate >> 32) = 109,999 ns, and raises the tick to 100,000.
//
// The rate is of what is a second or two old, because the system's own clock is pulled right all
// the time. A rate that differs from the last by more than a 128th is not believed at first: the
// machine slept, or runs on another processor now, and counting begins anew.
#include "collect/tick.h"

#include "base/mem.h"
#include "os/now.h"
#include "wire/counter.h"

#include <cpuid.h>
#include <string.h>

enum {
	COMPARISONS = 3,
	BASE_MIN_NS = 100000, // a rate from less would be worth little
	BASE_MAX_NS = 1000000000,
	RATE_JUMP = 128, // a rate that differs by more than a 128th is of another counter
};

// ---- By a thread ----------------------------------------------------------------------------

static void count_length(struct segment_clock *clock, uint64_t length_ns)
{
	ASSERT(counter_place(length_ns) < SEGMENT_LENGTHS);
	atomic_fetch_add(&clock->lengths[counter_place(length_ns)], 1);
	if (length_ns > atomic_load(&clock->worst_ns))
		atomic_store(&clock->worst_ns, length_ns);
}

// False: a program that is left has stopped the clock (ATTACH_END).
static bool raise_own(struct segment_clock *clock, uint64_t to_ns)
{
	uint64_t tick_ns = atomic_load(&clock->now_ns);

	while (tick_ns != SEGMENT_CLOCK_STOP)
		if (atomic_compare_exchange_weak(&clock->now_ns, &tick_ns, to_ns))
			return true;
	return false;
}

// Deadlines are counted from the first, so that ticks do not drift; one that was missed begins anew
// from now.
static void *tick_main(void *argument)
{
	struct tick *tick = argument;
	uint64_t began_ns = tick->clock->began_ns;
	uint64_t last_ns = now_steady_ns();
	uint64_t deadline_ns = last_ns;

	session_be_punctual();
	while (!atomic_load_explicit(&tick->quitting, memory_order_relaxed)) {
		uint64_t now_ns;

		if (atomic_load_explicit(&tick->stopping, memory_order_relaxed)) {
			atomic_store(&tick->clock->now_ns, SEGMENT_CLOCK_STOP);
			return NULL;
		}
		now_ns = now_steady_ns();
		if (!raise_own(tick->clock, now_ns - began_ns))
			return NULL;
		if (now_ns != last_ns)
			count_length(tick->clock, now_ns - last_ns);
		last_ns = now_ns;
		deadline_ns += tick->period_ns;
		if (deadline_ns < now_ns)
			deadline_ns = now_ns + tick->period_ns;
		now_sleep_until(deadline_ns);
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
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) &&
	       session_counter_is_trusted();
}

// The counter and the clock at one moment: the nearest of a few tries.
//
// Reading the counter before and after the clock says how long that took; of three tries the
// quickest is the nearest.
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
//
// 0 until there is something to compare.
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

// Two beats take turns: a guest reads the one that `beats` names, while the other is written. A
// guest that was held up for so long that it reads the one being written sees `beats` change, and
// reads again.
//
// `beats` is written last: who reads it finds the beat that it names complete.
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
	if (!session_open(&tick->session, err))
		return false;
	tick->clock = tick->session.clock;
	tick->clock->magic = SEGMENT_MAGIC;
	tick->clock->version = SEGMENT_VERSION;
	tick->clock->began_ns = now_steady_ns();
	tick->clock->tick_ns = tick->period_ns;
	return true;
}

static void drop_page(struct tick *tick)
{
	session_close(&tick->session);
	tick->clock = NULL;
}

// Without a counter that can be trusted a thread raises the tick, each 100 us.
bool tick_open(struct tick *tick, uint64_t period_ns, enum tick_source source, struct err *err)
{
	ASSERT(period_ns > 0);
	memset(tick, 0, sizeof *tick);
	tick->period_ns = period_ns;
	if (!make_page(tick, err))
		return false;
	if (source == TICK_ANY && counter_is_good()) {
		uint64_t count, ns;

		compare(tick, &count, &ns);
		compare_anew(tick, count, ns);
		// So that the first guest finds a rate.
		now_sleep(BASE_MIN_NS);
		beat(tick);
	} else if (!start_thread(tick, err)) {
		drop_page(tick);
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
	drop_page(tick);
}

uint64_t tick_now(const struct tick *tick)
{
	ASSERT(tick->clock != NULL);
	return now_steady_ns() - tick->clock->began_ns;
}

uint64_t tick_told(const struct tick *tick)
{
	uint64_t tick_ns = atomic_load(&tick->clock->now_ns);

	return tick_ns != SEGMENT_CLOCK_STOP && !tick->own_times ? tick_ns : tick_now(tick);
}

uint64_t tick_mark(const struct tick *tick)
{
	uint64_t tick_ns = atomic_load(&tick->clock->now_ns);

	ASSERT(tick->clock != NULL);
	// Two steps at once: no other is given the one between.
	while (tick_ns != SEGMENT_CLOCK_STOP && !tick->own_times)
		if (atomic_compare_exchange_weak(&tick->clock->now_ns, &tick_ns, tick_ns + 2))
			return tick_ns + 1;
	return tick_now(tick);
}

uint64_t tick_raise(const struct tick *tick, uint64_t now_ns)
{
	if (!tick->threaded && !tick->own_times)
		counter_raise(tick->clock, now_ns);
	return tick_told(tick);
}

// Guests that see this record nothing more.
void tick_stop(struct tick *tick)
{
	if (!tick->threaded) {
		atomic_store(&tick->clock->now_ns, SEGMENT_CLOCK_STOP);
		return;
	}
	atomic_store(&tick->stopping, true);
	while (atomic_load(&tick->clock->now_ns) != SEGMENT_CLOCK_STOP)
		now_sleep(100000);
}

// The middle of the histogram's place that has the median.
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
	session_ring(&tick->session);
}

uint32_t tick_bell(const struct tick *tick)
{
	return atomic_load(&tick->clock->bell);
}

// A beat before and one after it: guests have a fresh one while the collector sleeps, and the
// next pass begins with one.
void tick_sleep(struct tick *tick, uint32_t seen, uint64_t timeout_ns)
{
	beat(tick);
	if (timeout_ns == 0)
		return;
	session_sleep(&tick->session, seen, timeout_ns);
	beat(tick);
}
