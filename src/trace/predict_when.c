// For example each block has 10,000 events in 0.1 s. To predict them costs 0.12 ms, which is less
// than 5 % of that. The first block, without, has 40,000 bytes, so 4 an event: expensive, and the
// next one is with. What the blocks after it have, and what is done then:
//
//     with       36,500 bytes   saved less than an eighth of 40,000: the next two are without
//     without    40,000, twice  wait 1, 0; then it is tried again
//     with       36,500         again: the next four are without (waits 1, 3, 7 … 63)
//     without    40,000, four times
//     with       32,000         saved an eighth: the next one is with, too
#include "trace/predict_when.h"

#include "base/mem.h"

// Did the block save at least an eighth?
static bool saved(const struct predict_when *when, uint64_t cost)
{
	return cost * 8 <= (uint64_t)when->plain * 7;
}

// A block that is so cheap that it may be cheap without, too, is followed by one that finds out.
static void block_with(struct predict_when *when, uint64_t cost, bool slow)
{
	when->blocks++;
	if (!saved(when, cost)) {
		when->waits = when->waits * 2 + 1;
		if (when->waits > PREDICT_WHEN_WAIT_MAX)
			when->waits = PREDICT_WHEN_WAIT_MAX;
		when->wait = when->waits;
		when->on = false;
		return;
	}
	when->waits = 0;
	when->on = slow && cost >= PREDICT_WHEN_CHEAP && when->blocks < PREDICT_WHEN_BLOCKS_MAX;
}

static void block_without(struct predict_when *when, uint64_t cost, bool slow)
{
	when->plain = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
	when->blocks = 0;
	when->before += when->before < PREDICT_WHEN_BEFORE;
	if (when->before < PREDICT_WHEN_BEFORE)
		return;
	if (when->wait > 0)
		when->wait--;
	else
		when->on = slow && cost >= PREDICT_WHEN_EXPENSIVE;
}

// Small blocks say nothing of the program's ways, as their head and their first addresses are most
// of them: they change nothing.
bool predict_when(struct predict_when *when, uint32_t events, uint64_t bytes, uint64_t busy_ns)
{
	uint64_t cost, spent_ns = (uint64_t)events * PREDICT_WHEN_COST_NS;
	bool slow = busy_ns / 100 * PREDICT_WHEN_PERCENT >= spent_ns;

	if (events < PREDICT_WHEN_EVENTS_MIN)
		return when->on;
	cost = bytes * PREDICT_WHEN_ONE / events;
	if (when->on)
		block_with(when, cost, slow);
	else
		block_without(when, cost, slow);
	ASSERT(when->wait <= when->waits && when->waits <= PREDICT_WHEN_WAIT_MAX);
	return when->on;
}
