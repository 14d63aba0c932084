// For example, a block at 0x7f1234567890: its leaf is number 0x7f1234567890 >> 30 = 0x1fc48; in the
// leaf, 0x34567890 bytes on, its bit is number 0x34567890 / 8 = 0x68acf12: bit 18 of word 0x345678.
#include "recorder/budget.h"

#include "recorder/recording.h"

// Longer than that, in counts of the processor's counter, a call does not take: it waited.
enum { BUDGET_COUNTS_MAX = 1 << 16 };

static const _Atomic uint32_t budget_every;

struct budget_leaf *_Atomic *budget_leaves;
const _Atomic uint32_t *budget_turn = &budget_every;

// A forked child has its parent's bits already.
COLD bool budget_start(const _Atomic uint32_t *turn)
{
	if (!budget_leaves)
		budget_leaves = recording_pages(BUDGET_LEAVES * sizeof(*budget_leaves), false);
	if (!budget_leaves)
		return false;
	__atomic_store_n(&budget_turn, turn, __ATOMIC_RELEASE);
	return true;
}

COLD void budget_forget(void)
{
	if (__atomic_load_n(&budget_turn, __ATOMIC_RELAXED) != &budget_every)
		__atomic_store_n(&budget_turn, &budget_every, __ATOMIC_RELEASE);
}

// Two threads may come with the first block of a leaf at once: one of the two leaves is kept. A
// sealed process makes no call.
static COLD bool budget_grow(uint64_t address)
{
	uint64_t number = address >> BUDGET_LEAF_LOG2;
	struct budget_leaf *none = NULL, *leaf;

	if (number >= BUDGET_LEAVES || kernel_sealed)
		return false;
	leaf = recording_pages(sizeof(*leaf), false);
	if (!leaf)
		return false;
	if (!atomic_compare_exchange_strong(&budget_leaves[number], &none, leaf))
		recording_give_back(leaf, sizeof(*leaf));
	return true;
}

bool budget_keep(uint64_t address)
{
	_Atomic uint32_t *word = budget_word(address);

	if (unlikely(!word)) {
		if (!budget_grow(address)) {
			recording_drop();
			return false;
		}
		word = budget_word(address);
	}
	atomic_fetch_or_explicit(word, budget_bit(address), memory_order_relaxed);
	return true;
}

// NULL: the process has none now.
static struct segment_cost *budget_cost(void)
{
	return recording_state && recording_state->segment ? &recording_state->segment->cost : NULL;
}

COLD void budget_count(uint32_t calls)
{
	struct segment_cost *cost = budget_cost();

	if (cost)
		atomic_fetch_add_explicit(&cost->calls, calls, memory_order_relaxed);
}

COLD void budget_count_sample(uint64_t left_out)
{
	struct segment_cost *cost = budget_cost();

	if (!cost)
		return;
	atomic_fetch_add_explicit(&cost->samples, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cost->left_out, left_out, memory_order_relaxed);
}

COLD void budget_measured(uint64_t began, bool sample)
{
	struct segment_cost *cost = budget_cost();
	uint64_t counts = counter_read() - began;

	if (!cost || counts > BUDGET_COUNTS_MAX)
		return;
	atomic_fetch_add_explicit(sample ? &cost->samples_timed : &cost->calls_timed, 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(sample ? &cost->samples_counts : &cost->calls_counts, counts,
				  memory_order_relaxed);
}
