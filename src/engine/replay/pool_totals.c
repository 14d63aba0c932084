#include "engine/replay/pool_totals.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>

struct pool {
	struct pool_total total;
	struct map blocks; // address -> size
};

struct pool_totals {
	struct pool *pools; // by heap
	size_t capacity;
};

struct pool_totals *pool_totals_new(void)
{
	return mem_alloc(1, sizeof(struct pool_totals));
}

void pool_totals_free(struct pool_totals *totals)
{
	if (!totals)
		return;
	for (size_t i = 0; i < totals->capacity; i++)
		map_fini(&totals->pools[i].blocks);
	mem_free(totals->pools);
	mem_free(totals);
}

bool pool_totals_wants(const struct trace_event *event)
{
	return event->kind == TRACE_HEAP_ALLOC || event->kind == TRACE_HEAP_FREE ||
	       event->kind == TRACE_HEAP_RESET || event->kind == TRACE_HEAP_DESTROY;
}

static struct pool *pool_of(struct pool_totals *totals, heap_id heap)
{
	size_t before = totals->capacity;

	totals->pools =
		mem_grow(totals->pools, &totals->capacity, heap + (size_t)1, sizeof *totals->pools);
	memset(totals->pools + before, 0, (totals->capacity - before) * sizeof *totals->pools);
	return &totals->pools[heap];
}

static void leave(struct pool *pool, uint64_t size)
{
	pool->total.live.count--;
	pool->total.live.bytes -= size;
}

static void allocate(struct pool *pool, const struct trace_event *event)
{
	struct pool_total *total = &pool->total;
	bool added;
	uint64_t *size = map_put(&pool->blocks, event->address, &added);

	// A block that lived there was freed without our being told.
	if (!added)
		leave(pool, *size);
	*size = event->size;
	total->allocated.count++;
	total->allocated.bytes += event->size;
	total->live.count++;
	total->live.bytes += event->size;
	if (total->live.bytes > total->peak.bytes) {
		total->peak = total->live;
		total->peak_ns = event->time_ns;
	}
}

static void release(struct pool *pool, const struct trace_event *event)
{
	const uint64_t *size = map_find(&pool->blocks, event->address);

	if (!size) {
		pool->total.unknown_frees++;
		return;
	}
	leave(pool, *size);
	map_remove(&pool->blocks, event->address);
	pool->total.frees++;
}

void pool_totals_add(struct pool_totals *totals, const struct trace_event *event)
{
	struct pool *pool = pool_of(totals, event->heap);

	pool->total.used = true;
	if (event->kind == TRACE_HEAP_ALLOC) {
		allocate(pool, event);
	} else if (event->kind == TRACE_HEAP_FREE) {
		release(pool, event);
	} else {
		pool->total.resets++;
		pool->total.live = (struct heap_amount){ 0 };
		map_clear(&pool->blocks);
	}
}

const struct pool_total *pool_totals_get(const struct pool_totals *totals, heap_id heap)
{
	static const struct pool_total none;

	return heap < totals->capacity ? &totals->pools[heap].total : &none;
}

void pool_totals_set(struct pool_totals *totals, heap_id heap, const struct pool_total *total)
{
	pool_of(totals, heap)->total = *total;
}
