// The distance to the next sample is -ln(u) * mean with u random between 0 and 1, all in integers.
// For example, with a mean of 512 KiB and the random word 2^63, u is a half: -log2(u) is 1, which
// has no digits after the point; times ln 2 that is 0.693; times 524,288, and one more, 363,409
// bytes. With the word 2^62, twice that. The digits of a logarithm come from squaring: 1.5 squared
// is 2.25, that is 2 or more, so the first digit is 1, and it goes on with 1.125; squared, 1.266:
// 0; and so on.
//
// A free asks sample_filter first: one byte, which counts the sampled blocks whose hash has these
// 17 bits. With 1,000 sampled blocks, 131,072 counters are 0 but for 1,000 at most, so 99 of 100
// frees cost one load.
#include "recorder/sample.h"

#include "recorder/clock.h"
#include "recorder/recording.h"
#include "wire/counter.h"
#ifndef KERNEL_NT
#include "recorder/usdt_linux.h"
#endif

// The set: lines of eight addresses. What finds no room in its line of the first table goes to one
// of a few lines of the second, which is touched only then.
enum {
	SAMPLE_LINE = 8,
	SAMPLE_NEAR_LOG2 = 13,
	SAMPLE_FAR_LOG2 = 17,
	SAMPLE_FAR_LINES = 16, // that are tried
	SAMPLE_FILTER_MAX = UINT8_MAX,
	SAMPLE_POINTS_MAX = 4096,
};

#define SAMPLE_EACH (INT64_MIN / 2) // bytes to go, where each block is hit

struct sample_line {
	_Alignas(64) uint64_t address[SAMPLE_LINE];
};

uint64_t sample_mean = SAMPLE_UNKNOWN;
union sample_seldom sample_seldom = { { .sampled = true, .watched = true } };
uint8_t sample_filter[1 << SAMPLE_FILTER_LOG2];
#ifndef KERNEL_NT
__thread struct sample_way sample_way;
#endif

static struct sample_line *sample_near, *sample_far;

// A whole random word (splitmix64; Steele, Lea, Flood, 2014).
//
// Each thread has a seed of its own, from the time, its id and where its state is: threads that
// begin alike do not sample alike.
static uint64_t sample_random(struct sample_way *way)
{
	uint64_t word;

	if (!way->seed)
		way->seed = clock_now() * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)way << 20 ^
			    kernel_thread_id();
	way->seed += 0x9e3779b97f4a7c15u;
	word = way->seed;
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
	word = (word ^ word >> 27) * 0x94d049bb133111ebu;
	return word ^ word >> 31;
}

// a * b as two words of 64 bits, the low one returned.
static uint64_t sample_multiply(uint64_t a, uint64_t b, uint64_t *high)
{
	uint64_t a_low = a & UINT32_MAX, a_high = a >> 32;
	uint64_t b_low = b & UINT32_MAX, b_high = b >> 32;
	uint64_t low = a_low * b_low;
	uint64_t middle = a_high * b_low + (low >> 32);
	uint64_t other = a_low * b_high + (middle & UINT32_MAX);

	*high = a_high * b_high + (middle >> 32) + (other >> 32);
	return other << 32 | (low & UINT32_MAX);
}

// -log2(word / 2^64) with 32 binary digits behind the point. The digits of a logarithm come one by
// one from squaring: no floating point in somebody else's malloc.
//
// For example, word = 3 << 62, three quarters: no zeros, x is 1.5, and log2(x) is 0.585 (binary
// 0.1001…). The result is (0 + 1) - 0.585 = 0.415.
static uint64_t sample_minus_log2(uint64_t word)
{
	uint32_t zeros = (uint32_t)__builtin_clzll(word | 1);
	uint64_t x = (word | 1) << zeros; // 1 <= x < 2, as x / 2^63
	uint64_t digits = 0;

	for (int i = 0; i < 32; i++) {
		uint64_t high, low = sample_multiply(x, x, &high);
		bool two = high >> 63;

		x = two ? high : high << 1 | low >> 63;
		digits = digits << 1 | two;
	}
	return ((uint64_t)(zeros + 1) << 32) - digits;
}

// The distance to the next sample: exponential with the mean, at least 1.
//
// ln(2) * 2^32 is 2,977,044,471: it makes a natural logarithm of the binary one. The sum is exact
// to 2^-32 of the mean.
static int64_t sample_draw(struct sample_way *way)
{
	const uint64_t ln2 = 2977044471; // * 2^32
	// At most 64 in front of the point and 32 digits behind it, so no more than 2^38.
	uint64_t bytes = counter_scale(sample_minus_log2(sample_random(way)), ln2);
	uint64_t mean = way->turn ? UINT64_C(1) << way->turn : sample_mean;
	uint64_t high, low = sample_multiply(bytes, mean, &high);

	if (high >> 30) // with 32 digits behind the point
		return INT64_MAX / 2;
	return (int64_t)(high << 32 | low >> 32) + 1;
}

static bool sample_put_in(struct sample_line *line, uint64_t address)
{
	for (int i = 0; i < SAMPLE_LINE; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&line->address[i], &none, address, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

// A thread that frees has the block to itself, so no other takes the same address out.
static bool sample_take_from(struct sample_line *line, uint64_t address)
{
	for (int i = 0; i < SAMPLE_LINE; i++)
		if (__atomic_load_n(&line->address[i], __ATOMIC_ACQUIRE) == address) {
			__atomic_store_n(&line->address[i], 0, __ATOMIC_RELEASE);
			return true;
		}
	return false;
}

static struct sample_line *sample_far_line(uint32_t hash, uint32_t n)
{
	return &sample_far[((hash >> (32 - SAMPLE_FAR_LOG2)) + n) & ((1 << SAMPLE_FAR_LOG2) - 1)];
}

// False: no room anywhere.
//
// Near: 8,192 lines of 64 bytes, 512 KiB; far: 131,072 lines, 8 MiB, touched when a near line is
// full. That is room for a million sampled blocks.
static bool sample_put(uint64_t address)
{
	uint32_t hash = sample_hash(address);

	if (sample_put_in(&sample_near[hash & ((1 << SAMPLE_NEAR_LOG2) - 1)], address))
		return true;
	for (uint32_t n = 0; n < SAMPLE_FAR_LINES; n++)
		if (sample_put_in(sample_far_line(hash, n), address))
			return true;
	return false;
}

static bool sample_take(uint64_t address)
{
	uint32_t hash = sample_hash(address);

	if (sample_take_from(&sample_near[hash & ((1 << SAMPLE_NEAR_LOG2) - 1)], address))
		return true;
	for (uint32_t n = 0; n < SAMPLE_FAR_LINES; n++)
		if (sample_take_from(sample_far_line(hash, n), address))
			return true;
	return false;
}

// Up or down by one; once full it stays so.
//
// 255 means 255 or more: it cannot be counted down any more, as it is not known how far.
static void sample_count(uint64_t address, int change)
{
	uint8_t *count = &sample_filter[sample_hash(address) >> (32 - SAMPLE_FILTER_LOG2)];
	uint8_t old = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (old != SAMPLE_FILTER_MAX &&
	       !__atomic_compare_exchange_n(count, &old, (uint8_t)(old + change), true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

// A forked child has its parent's tables already.
static void sample_set_mean(uint64_t mean)
{
	__atomic_store_n(&sample_mean, mean, __ATOMIC_RELEASE);
	__atomic_store_n(&sample_seldom.sampled, mean != 0, __ATOMIC_RELEASE);
}

COLD bool sample_start(uint64_t mean)
{
	if (mean && !sample_near) {
		sample_far = recording_pages(sizeof(*sample_far) << SAMPLE_FAR_LOG2, false);
		sample_near = recording_pages(sizeof(*sample_near) << SAMPLE_NEAR_LOG2, false);
		if (!sample_near || !sample_far)
			return false;
	}
	if (__atomic_load_n(&sample_mean, __ATOMIC_RELAXED) != mean) // else a child copies no page
		sample_set_mean(mean);
	return true;
}

COLD bool sample_start_at_times(const _Atomic uint32_t *turn)
{
	if (!budget_start(turn))
		return false;
	sample_set_mean(SAMPLE_AT_TIMES);
	return true;
}

// The block at `address` was recorded, so its end has to be. False: there is no room to remember
// it, and it must not be recorded.
COLD bool sample_keep(uint64_t address)
{
	if (!sample_mean || sample_mean == SAMPLE_UNKNOWN)
		return true;
	if (budget_leaves)
		return budget_keep(address);
	if (!sample_put(address)) {
		recording_drop();
		return false;
	}
	sample_count(address, 1);
	return true;
}

// One more that is recorded as all are.
static void sample_count_call(struct sample_way *way)
{
	if (likely(++way->calls % SEGMENT_CALLS_A_TIME))
		return;
	budget_count(SEGMENT_CALLS_A_TIME);
	way->due = clock_counter_allowed;
}

// The first call of a process: begin, so that it is known. True: record this one as ever.
static COLD bool sample_is_off(void)
{
	if (sample_mean == SAMPLE_UNKNOWN && !recording_begin() &&
	    recording_phase() == RECORDING_OFF)
		sample_set_mean(0);
	return sample_mean == 0 || sample_mean == SAMPLE_UNKNOWN;
}

// The way goes on behind the first sample in a block, of which `rest` bytes are left. How far it is
// to the next one does not depend on what was before: so further samples in the block need not be
// looked for, unless somebody wants their number.
//
// The exponential distribution has no memory: that is why a new distance from the block's end is as
// good as going on within it.
static void sample_go_on(struct sample_way *way, uint64_t rest)
{
	way->left = sample_draw(way);
#ifndef KERNEL_NT
	if (likely(!usdt_is_watched()))
		return;
	way->points = 1;
	// Of a block that would take long, the mean number.
	if (rest / sample_mean >= SAMPLE_POINTS_MAX) {
		way->points += rest / sample_mean;
		return;
	}
	while ((uint64_t)way->left <= rest) {
		way->points++;
		rest -= (uint64_t)way->left;
		way->left = sample_draw(way);
	}
	way->left -= (int64_t)rest;
#else
	(void)rest;
#endif
}

// The thread's distance is another one from here on. How far it was on its way does not matter. A
// forked child may have to begin for this.
COLD void sample_turn(struct sample_way *way)
{
	uint32_t turn = atomic_load_explicit(budget_turn, memory_order_relaxed);

	if (turn > LANE_SAMPLE_LOG2_MAX || (!way->seed && !recording_begin()))
		return;
	way->turn = turn;
	way->left = turn ? sample_draw(way) : SAMPLE_EACH;
}

// With a budget. A thread that records every call is never on its way.
//
// budget_count_sample gets how many calls of this size the sample is for.
static bool sample_hit_at_times(struct sample_way *way, uint64_t size)
{
	way->drawn = way->turn;
	if (!way->turn) {
		way->left = SAMPLE_EACH;
		sample_count_call(way);
		return true;
	}
	way->left = sample_draw(way);
	way->due = clock_counter_allowed;
	budget_count_sample((UINT64_C(1) << way->turn) / size);
	return true;
}

COLD bool sample_ends(uint64_t address)
{
	_Atomic uint32_t *word = budget_word(address);
	uint32_t bit = budget_bit(address);

#ifndef KERNEL_NT
	sample_count_call(&sample_way);
#endif
	return atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed) & bit;
}

// `left` is below 0 by as much as the block goes on after the sample. False: the thread's first
// distance was drawn here and is longer than the block.
COLD bool sample_hit(struct sample_way *way, uint64_t size)
{
	uint64_t rest = (uint64_t)-way->left;

	if (sample_is_off())
		return true;
	if (budget_leaves)
		return sample_hit_at_times(way, size);
	if (!way->seed) { // the thread's first: nothing was drawn yet
		int64_t first = sample_draw(way);

		if ((uint64_t)first > size) {
			way->left = first - (int64_t)size;
			return false;
		}
		rest = size - (uint64_t)first;
	}
	sample_go_on(way, rest);
	return true;
}

// Whether the block that is freed was recorded; it is forgotten then. A free asks the filter before
// (sample.h), so this is seldom called for nothing.
COLD bool sample_was_hit(uint64_t address)
{
	// free(NULL): in the set, 0 means that a place is empty.
	if (sample_is_off() || !address)
		return true;
	if (budget_leaves)
		return budget_has(address) && sample_ends(address);
	if (!sample_take(address))
		return false;
	sample_count(address, -1);
#ifndef KERNEL_NT
	if (unlikely(usdt_is_watched()))
		usdt_free(address);
#endif
	return true;
}
