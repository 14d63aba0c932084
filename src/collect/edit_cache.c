#include "collect/edit_cache.h"

#include <string.h>

void edit_cache_init(struct edit_cache *cache)
{
	*cache = (struct edit_cache){
		.lines = mem_map(EDIT_CACHE_LINES * sizeof *cache->lines),
	};
}

void edit_cache_fini(struct edit_cache *cache)
{
	mem_unmap(cache->lines, EDIT_CACHE_LINES * sizeof *cache->lines);
	*cache = (struct edit_cache){ 0 };
}

uint32_t edit_cache_tag(struct edit_cache *cache)
{
	return cache->tags + 1 < EDIT_CACHE_TAGS ? ++cache->tags * EDIT_CACHE_TAG : 0;
}

void edit_cache_put(struct edit_cache_line *lines, const struct edit_cache_key *key,
		    stack_id parent, const stack_id *ids, uint32_t push)
{
	lines[1] = lines[0];
	_mm_store_si128((__m128i *)(void *)lines, key->low);
	_mm_store_si128((__m128i *)(void *)&lines->frames[3], key->high);
	lines->parent = parent;
	memcpy(lines->ids, ids, push * sizeof *ids);
}
