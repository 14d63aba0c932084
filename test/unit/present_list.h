// The blocks of a present as a list, for tests.
#pragma once

#include "base/mem.h"
#include "engine/replay/present.h"

struct present_list {
	struct present_block *blocks;
	size_t count, capacity;
};

static inline void present_list_add(void *context, const struct present_block *block)
{
	struct present_list *list = context;

	*MEM_ADD(list->blocks, list->count, list->capacity) = *block;
}

// The caller frees `blocks`.
static inline struct present_list present_list(const struct present *present, process_id process)
{
	struct present_list list = { 0 };

	present_each_block(present, process, PRESENT_ALL, present_list_add, &list);
	return list;
}
