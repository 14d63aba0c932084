#include "collect/edit_cache.h"

#include "base/mem.h"

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
	return cache->tags + 1 < EDIT_CACHE_TAGS ? ++cache->tags : 0;
}
