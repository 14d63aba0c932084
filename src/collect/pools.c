// For example, a program creates pool 1, "frames": nothing is in the trace yet. Its first block
// makes it heap 5 of the trace, say, under that name. After a fork the child has the pool's name,
// and its first block there makes a heap of its own, 6: blocks of the two never mix.
#include "collect/pools.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void pools_fini(struct pools *pools)
{
	for (size_t i = 0; i < pools->count; i++)
		mem_free(pools->list[i].name);
	mem_free(pools->list);
	map_fini(&pools->places);
	memset(pools, 0, sizeof *pools);
}

static struct pools_one *put(struct pools *pools, uint32_t number)
{
	uint64_t *place = map_put(&pools->places, number, NULL);

	if (*place == 0) {
		*MEM_ADD(pools->list, pools->count, pools->capacity) =
			(struct pools_one){ .number = number };
		*place = pools->count;
	}
	ASSERT(*place <= pools->count && pools->list[*place - 1].number == number);
	return &pools->list[*place - 1];
}

void pools_add(struct pools *pools, uint32_t number, const void *name, size_t length)
{
	struct pools_one *pool = put(pools, number);

	mem_free(pool->name);
	pool->name = mem_copy_bytes(name, length);
}

// Names only: heaps of the trace are made at a first event, under the child.
void pools_inherit(struct pools *pools, const struct pools *parent, uint32_t limit)
{
	for (size_t i = 0; i < parent->count; i++) {
		const struct pools_one *pool = &parent->list[i];

		if (pool->number < limit && pool->name != NULL)
			pools_add(pools, pool->number, pool->name, strlen(pool->name));
	}
}

heap_id pools_heap(struct pools *pools, uint32_t number, process_id process, struct writer *writer)
{
	struct pools_one *pool = put(pools, number);
	struct trace_heap heap = { .process = process, .name = pool->name };
	char name[32];

	if (pool->heap != 0)
		return pool->heap;
	if (heap.name == NULL) {
		snprintf(name, sizeof name, "pool %u", number);
		heap.name = name;
	}
	pool->heap = writer_add_heap(writer, &heap);
	return pool->heap;
}
