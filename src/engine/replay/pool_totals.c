// For example a pool gives out blocks of 100 and 50 bytes, takes back the first, gives out one of
// 60, and then takes back an address where it gave out none:
//
//     allocated   3 blocks, 210 bytes
//     live        2 blocks, 110 bytes
//     peak        2 blocks, 150 bytes, at the time of the second
//     frees       1, and 1 that is unknown
#include "engine/replay/pool_totals.h"

#include "base/mem.h"
#include "engine/replay/lives.h"
#include "trace/effect.h"

struct pool_totals {
	struct lives *lives;
	struct pool_total *pools; // by heap
	size_t capacity;
};

static struct pool_total *pool_of(struct pool_totals *totals, heap_id heap)
{
	return MEM_REACH(totals->pools, totals->capacity, heap);
}

static void begin(void *context, const struct lives_block *block)
{
	struct pool_total *total = pool_of(context, block->heap);

	total->allocated.count++;
	total->allocated.bytes += block->size;
	total->live.count++;
	total->live.bytes += block->size;
	if (total->live.bytes > total->peak.bytes) {
		total->peak = total->live;
		total->peak_ns = block->time_ns;
	}
}

// All ends lower the level; frees are those that a call of the pool's asked for, not what went with
// it or with its process.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct pool_total *total = pool_of(context, block->heap);

	if (block->origin != LIVES_BEGUN) {
		total->unknown_frees++;
		return;
	}
	total->live.count--;
	total->live.bytes -= block->size;
	total->frees += end->cause == LIVES_FREE;
}

struct pool_totals *pool_totals_new(const struct reader *reader)
{
	struct pool_totals *totals = mem_alloc(1, sizeof *totals);
	const struct lives_watcher watcher = { .begin = begin, .end = end, .context = totals };

	totals->lives = lives_new(reader, &watcher, NULL);
	return totals;
}

void pool_totals_free(struct pool_totals *totals)
{
	if (!totals)
		return;
	lives_free(totals->lives);
	MEM_FREE(totals->pools, totals);
}

void pool_totals_add(struct pool_totals *totals, const struct trace_event *event)
{
	struct pool_total *total = pool_of(totals, event->heap);

	total->used = true;
	total->resets += (effect_of(event->kind) & EFFECT_DESTROYS) != 0;
	lives_add_event(totals->lives, event);
}

const struct pool_total *pool_totals_get(const struct pool_totals *totals, heap_id heap)
{
	static const struct pool_total none;

	return heap < totals->capacity ? &totals->pools[heap] : &none;
}

void pool_totals_set(struct pool_totals *totals, heap_id heap, const struct pool_total *total)
{
	*pool_of(totals, heap) = *total;
}
