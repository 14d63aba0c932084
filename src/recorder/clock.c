// How a lane gets its pace. Each reading of the counter that came less than 16 us after the last
// one doubles the bytes until the next: 0, 16, 48, 112, 240, 496. With events of 7 bytes, 496 are
// 71 events, and at 230 ns each that is 16 us: so it stays. If then nothing happens for 1 ms, the
// budget is 0 again, and the next event reads.
//
// A loop that does nothing but allocate writes 496 bytes in a microsecond. There each reading makes
// the next one come a 32nd later than it did: 511, 526, ... 4,096. So the events that have an old
// time after a pause are at most 71, or a 32nd of those since the last that had one.
#include "recorder/clock.h"

#include "recorder/kernel.h"
#include "recorder/lane.h"
#include "recorder/recording.h"
#include "wire/counter.h"

enum {
	CLOCK_BUDGET_MAX = 4096,
	CLOCK_BUDGET_SOON = 496, // it is doubled up to here
	CLOCK_BUDGET_STEP = 16,
	CLOCK_BUDGET_LATER = 32, // and grows by such a part from here on
	CLOCK_GAP_NS = 16000,    // how far apart two readings of a lane should be
};

bool clock_counter_allowed;

// Called once the segment is there. Without the counter the collector's ticks are the time.
void clock_start(void)
{
	clock_counter_allowed = clock_find();
}

// The caller holds lanes_lock, so no lane is being made.
void clock_forbid(void)
{
	const struct recording_state *state = recording_state;

	clock_counter_allowed = false;
	for (uint32_t id = 1; id < state->lanes_count; id++)
		if (state->lanes[id])
			state->lanes[id]->clock.by_counter = false;
}

void clock_init(struct lane *lane, bool exact)
{
	lane->exact = exact;
	lane->tick = exact ? &lane->exact_ns : &recording_state->clock->now_ns;
	lane->clock.by_counter = clock_counter_allowed;
	lane->clock.budget = 0;
}

// The lane's limit, from its room and its budget.
static void clock_set_limit(struct lane *lane)
{
	// Events that take the long way anyway do so by having no budget.
	uint64_t budget = lane->verify ? 0 : lane->clock.budget;
	uint64_t limit = lane->head + LANE_ROOM + budget;

	lane->open_limit = lane->limit = limit < lane->room ? limit : lane->room;
}

// How long a tick was, for the report's line on the clock: in a histogram of 16 places a power of
// two (counter_place), and the longest.
static void clock_count(struct segment_clock *clock, uint64_t length_ns)
{
	uint64_t worst_ns = atomic_load_explicit(&clock->worst_ns, memory_order_relaxed);

	atomic_fetch_add_explicit(&clock->lengths[counter_place(length_ns)], 1,
				  memory_order_relaxed);
	while (length_ns > worst_ns &&
	       !atomic_compare_exchange_weak(&clock->worst_ns, &worst_ns, length_ns))
		;
}

// Read the counter, and raise the tick if it is behind. `unread`: there are events since the last
// reading, which may be as old as this.
//
// The tick is raised to a multiple of its period, never between: all lanes that read within one
// period agree.
static void clock_read(struct lane *lane, bool unread)
{
	struct segment_clock *clock = recording_state->clock;
	uint64_t now_ns = counter_convert(clock, counter_read());
	uint64_t tick_ns = atomic_load_explicit(&clock->now_ns, memory_order_relaxed);
	uint64_t period_ns = clock->tick_ns;

	lane->clock.read_ns = now_ns;
	if (likely(now_ns < tick_ns + period_ns) || tick_ns == SEGMENT_CLOCK_STOP)
		return;
	counter_raise(clock, now_ns - now_ns % period_ns);
	clock_count(clock, unread ? now_ns - tick_ns : period_ns);
}

static bool clock_can_read(struct lane *lane)
{
	return lane->clock.by_counter &&
	       atomic_load_explicit(&recording_state->clock->counter, memory_order_acquire) ==
		       SEGMENT_COUNTER_GOOD;
}

// How many bytes the lane may write until its next reading, from the time since its last one: twice
// as many at first, a 32nd more once they are many.
static void clock_adapt(struct lane *lane, uint64_t elapsed_ns)
{
	uint32_t budget = lane->clock.budget;

	if (elapsed_ns < CLOCK_GAP_NS)
		budget += budget < CLOCK_BUDGET_SOON ? budget + CLOCK_BUDGET_STEP
						     : budget / CLOCK_BUDGET_LATER;
	else if (elapsed_ns < 2 * CLOCK_GAP_NS)
		return;
	else if (elapsed_ns < 4 * CLOCK_GAP_NS)
		budget /= 2;
	else
		budget = 0;
	lane->clock.budget = budget < CLOCK_BUDGET_MAX ? budget : CLOCK_BUDGET_MAX;
}

// With --clock=ns each event asks the kernel. In a sealed process nothing can be asked, so that it
// is the counter's time.
void clock_set_exact(struct lane *lane)
{
	uint64_t tick_ns =
		atomic_load_explicit(&recording_state->clock->now_ns, memory_order_relaxed);

	if (kernel_sealed)
		lane->exact_ns = clock_now();
	else
		lane->exact_ns = tick_ns != SEGMENT_CLOCK_STOP ? clock_ask() : tick_ns;
}

// The slow way of an event: the lane has used up its budget. Read the counter, adapt, and set the
// new limit.
void clock_pass(struct lane *lane)
{
	if (unlikely(lane->exact)) {
		clock_set_exact(lane);
	} else if (likely(clock_can_read(lane))) {
		uint64_t last_ns = lane->clock.read_ns;

		clock_read(lane, lane->clock.budget > 0);
		clock_adapt(lane, lane->clock.read_ns - last_ns);
	} else if (!lane->clock.by_counter ||
		   recording_state->clock->counter == SEGMENT_COUNTER_BAD) {
		lane->clock.budget = UINT32_MAX; // the collector's clock is all there is
	}
	clock_set_limit(lane);
}

// What time the next event of the lane has. It costs one reading of the counter.
uint64_t clock_turn(struct lane *lane)
{
	if (lane->exact)
		return lane->exact_ns;
	if (clock_can_read(lane))
		clock_read(lane, false);
	return atomic_load_explicit(&recording_state->clock->now_ns, memory_order_relaxed);
}

// One nanosecond more than the tick, so that it is a time that no event before has. Returns
// SEGMENT_CLOCK_STOP if the recording is over.
uint64_t clock_mark(void)
{
	_Atomic uint64_t *tick = &recording_state->clock->now_ns;
	uint64_t tick_ns = atomic_load_explicit(tick, memory_order_relaxed);

	while (tick_ns != SEGMENT_CLOCK_STOP) {
		if (atomic_compare_exchange_weak(tick, &tick_ns, tick_ns + 1))
			return tick_ns + 1;
	}
	return tick_ns;
}

uint64_t clock_now(void)
{
	struct segment_clock *clock = recording_state->clock;

	if (!clock_counter_allowed || clock->counter != SEGMENT_COUNTER_GOOD)
		return clock->now_ns;
	return counter_raise(clock, counter_convert(clock, counter_read()));
}
