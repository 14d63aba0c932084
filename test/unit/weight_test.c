// An estimate from samples is right on average, and its variance is what it says.
#include "engine/replay/heap.h"
#include "engine/replay/weight.h"
#include "test/test.h"

#include <math.h>

static uint64_t random_state = 42;

static double uniform(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

TEST(without_samples_a_block_is_a_block)
{
	struct weight weight = weight_of(0, 100);

	CHECK_EQ(WEIGHT_UNIT, weight.count);
	CHECK_EQ(100 * WEIGHT_UNIT, weight.bytes);
	CHECK(weight.bytes_variance == 0);
}

TEST(a_block_far_larger_than_the_distance_stands_for_itself)
{
	struct weight weight = weight_of(1000, 1000000);

	CHECK_EQ(WEIGHT_UNIT, weight.count);
	CHECK_EQ(1000000ull * WEIGHT_UNIT, weight.bytes);
	CHECK(weight.count_variance < 1e-9);
}

TEST(a_small_one_stands_for_a_distance_of_bytes)
{
	struct weight weight = weight_of(1 << 20, 16);

	CHECK(fabs((double)weight_round(weight.bytes) - (1 << 20)) < 10);
	CHECK(fabs((double)weight_round(weight.count) - (1 << 16)) < 2);
}

TEST(over_many_samplings_the_mean_is_the_truth_and_the_spread_the_variance)
{
	enum { BLOCKS = 400, SAMPLINGS = 4000 };
	double sum = 0, squares = 0, truth = 0, variance = 0;

	for (uint64_t i = 0; i < BLOCKS; i++) {
		double p = -expm1(-(double)(10 + i) / 500);

		truth += (double)(10 + i);
		variance += (double)(10 + i) * (double)(10 + i) * (1 - p) / p;
	}
	for (int n = 0; n < SAMPLINGS; n++) {
		uint64_t units = 0;

		for (uint64_t i = 0; i < BLOCKS; i++)
			if (uniform() < -expm1(-(double)(10 + i) / 500))
				units += weight_of(500, 10 + i).bytes;
		sum += (double)weight_round(units);
		squares += pow((double)weight_round(units) - truth, 2);
	}
	CHECK(fabs(sum / SAMPLINGS - truth) < 4 * sqrt(variance / SAMPLINGS));
	CHECK(fabs(squares / SAMPLINGS / variance - 1) < 0.1);
}

TEST(the_heap_counts_what_samples_stand_for)
{
	struct heap *heap = heap_new(NULL);
	struct trace_event event = { .kind = TRACE_MALLOC, .size = 100, .stack = 1 };
	const struct heap_variance *variances;
	const struct heap_counts *counts;
	double p = -expm1(-0.1);

	heap_sampled(heap, 1000, NULL);
	heap_add_process(heap, false);
	heap_add_thread(heap, 0);
	for (uint64_t i = 0; i < 30; i++) {
		event.address = 0x1000 * (i + 1);
		event.number = i;
		heap_add_event(heap, &event);
	}
	event.kind = TRACE_FREE;
	for (uint64_t i = 0; i < 10; i++) {
		event.address = 0x1000 * (i + 1);
		heap_add_event(heap, &event);
	}
	heap_finish(heap);
	counts = &heap_totals(heap)->counts;
	CHECK_EQ((uint64_t)(30 / p + 0.5), counts->allocated.count);
	CHECK_EQ((uint64_t)(10 / p + 0.5), counts->frees);
	CHECK_EQ((uint64_t)(3000 / p + 0.5), counts->peak.bytes);
	CHECK_EQ((uint64_t)(2000 / p + 0.5), counts->live_at_exit.bytes);
	variances = heap_variances(heap);
	CHECK(fabs(variances[0].allocated / (30 * 1e4 * (1 - p) / (p * p)) - 1) < 1e-9);
	CHECK(fabs(variances[0].live_at_exit / (20 * 1e4 * (1 - p) / (p * p)) - 1) < 1e-9);
	CHECK(fabs(variances[0].at_peak / variances[0].allocated - 1) < 1e-9);
	heap_free(heap);
}
