// counter: the processor's time stamp counter as a clock that guests and collector share.
//
// The collector compares the counter with CLOCK_MONOTONIC now and then, and writes into the clock
// page how to turn the one into the other (a *beat*). A guest reads the counter itself, 9 ns, and
// raises the page's tick when that is more than a tick behind. So the tick goes on without anybody
// being woken for it, and stops while nothing happens.
//
// Beats are in two places in turn. While `beats` is n, place n & 1 is not written: whoever finds
// `beats` unchanged after reading has read a whole one, and a collector that is killed while
// writing leaves the other in order.
//
// Freestanding: no libc call. Included by the recorder and by the collector.
#pragma once

#include "wire/segment.h"

// The counter itself. It may be read a little early, by as much as the processor runs ahead. A
// fault where the program has forbidden it (PR_SET_TSC, SECCOMP_MODE_STRICT).
static inline uint64_t counter_read(void)
{
	return __builtin_ia32_rdtsc();
}

// count * rate / 2^32, for guests that have no wider number than 64 bits. For example at 2.5 GHz a
// count is 0.4 ns, so rate is 0x66666666, and 2,500,000,000 counts are 999,999,999 ns.
static inline uint64_t counter_scale(uint64_t count, uint64_t rate)
{
	uint64_t low = count & UINT32_MAX;

	return (count >> 32) * rate + low * (rate >> 32) + (low * (rate & UINT32_MAX) >> 32);
}

// Nanoseconds since the recording began, by counter value `count`. Meant only while clock->counter
// is SEGMENT_COUNTER_GOOD. It tries again while a beat is written, which is seldom: no lock, no
// call.
static inline uint64_t counter_convert(const struct segment_clock *clock, uint64_t count)
{
	uint64_t base_count, base_ns, rate;
	uint32_t beats = atomic_load_explicit(&clock->beats, memory_order_acquire);
	uint32_t before;

	do {
		const struct segment_beat *beat = &clock->beat[beats & 1];

		before = beats;
		base_count = atomic_load_explicit(&beat->count, memory_order_relaxed);
		base_ns = atomic_load_explicit(&beat->ns, memory_order_relaxed);
		rate = atomic_load_explicit(&beat->rate, memory_order_relaxed);
		// The three are read before `beats` is once more: unchanged, they belong together.
		atomic_thread_fence(memory_order_acquire);
		beats = atomic_load_explicit(&clock->beats, memory_order_relaxed);
	} while (beats != before);
	if (count <= base_count) // read before the beat
		return base_ns;
	return base_ns + counter_scale(count - base_count, rate);
}

// Raise the tick to `to_ns`, if it is behind that. SEGMENT_CLOCK_STOP is never behind. Returns the
// tick then. Any thread of any process of the session may.
static inline uint64_t counter_raise(struct segment_clock *clock, uint64_t to_ns)
{
	uint64_t tick_ns = atomic_load_explicit(&clock->now_ns, memory_order_relaxed);

	while (tick_ns < to_ns) {
		if (atomic_compare_exchange_weak(&clock->now_ns, &tick_ns, to_ns))
			return to_ns;
	}
	return tick_ns;
}

// Where a tick of `length_ns` is counted in segment_clock.lengths: 16 places for each power of two
// from 1024 ns on, so a length is known to a sixteenth. For example 100,000 ns: the power is 16
// (65,536), a sixteenth of that 4,096, and 100,000 is in the ninth after it: place 6 * 16 + 8 =
// 104, whose middle is 100,352. What is shorter is in place 0, what is longer than there are places
// in the last one.
static inline uint32_t counter_place(uint64_t length_ns)
{
	uint32_t power;

	if (length_ns < 1024)
		return 0;
	power = 63 - (uint32_t)__builtin_clzll(length_ns);
	if (power - 10 >= SEGMENT_LENGTHS / 16)
		return SEGMENT_LENGTHS - 1;
	return (power - 10) * 16 + ((uint32_t)(length_ns >> (power - 4)) & 15);
}

// The middle of a place, in nanoseconds.
static inline uint64_t counter_place_ns(uint32_t place)
{
	uint32_t power = place / 16 + 10;

	return (1ull << power) + ((2ull * (place % 16) + 1) << (power - 5));
}
