// Two lines have the same hash: an edit is in one of them or not known. For example, A was put
// there, then B: B is in the first line, and A in the second. C comes: it takes the first, B the
// second, and A is lost, which is counted. With as many lost as the small table has lines, the
// large one is taken, empty; what was in the small one is learned anew, within a batch or two.
#include "collect/edit_cache.h"

#include <string.h>

enum {
	FEW = EDIT_CACHE_WAYS << EDIT_CACHE_BITS_FEW,
	MANY = EDIT_CACHE_WAYS << EDIT_CACHE_BITS_MANY,
};

// Where fewer than one edit is found for so many lines that are lost, the large table is taken with
// so many times as many.
enum { FOUND_SELDOM = 4, PATIENCE = 16 };

static void use(struct edit_cache *cache, struct edit_cache_line *lines, uint32_t bits)
{
	cache->lines = lines;
	cache->shift = 64 - bits;
}

void edit_cache_init(struct edit_cache *cache)
{
	*cache = (struct edit_cache){ .few = mem_map(FEW * sizeof *cache->few) };
	use(cache, cache->few, EDIT_CACHE_BITS_FEW);
}

void edit_cache_fini(struct edit_cache *cache)
{
	mem_unmap(cache->few, FEW * sizeof *cache->few);
	mem_unmap(cache->many, MANY * sizeof *cache->many);
	*cache = (struct edit_cache){ 0 };
}

static COLD void grow(struct edit_cache *cache)
{
	ASSERT(cache->many == NULL);
	cache->many = mem_map(MANY * sizeof *cache->many);
	use(cache, cache->many, EDIT_CACHE_BITS_MANY);
}

// Whether a larger table would pay for its memory: what is kept comes again, or comes so often that
// it is worth a trial.
static bool is_worth_more(const struct edit_cache *cache)
{
	return cache->found >= cache->lost / FOUND_SELDOM ||
	       cache->lost >= (uint64_t)FEW * PATIENCE;
}

// Tags count up and are never given twice: lines of an image that is over stay, and are of no other
// image.
uint32_t edit_cache_tag(struct edit_cache *cache)
{
	return cache->tags + 1 < EDIT_CACHE_TAGS ? ++cache->tags * EDIT_CACHE_TAG : 0;
}

void edit_cache_put(struct edit_cache *cache, struct edit_cache_line *lines,
		    const struct edit_cache_key *key, stack_id parent, const stack_id *ids,
		    uint32_t push)
{
	ASSERT(push > 0 && push <= EDIT_CACHE_PUSHES);
	cache->lost += lines[1].what != 0;
	if (unlikely(cache->many == NULL && cache->lost >= FEW && is_worth_more(cache)))
		grow(cache);
	lines[1] = lines[0];
	_mm_store_si128((__m128i *)(void *)lines, key->low);
	_mm_store_si128((__m128i *)(void *)&lines->frames[3], key->high);
	lines->parent = parent;
	memcpy(lines->ids, ids, push * sizeof *ids);
}
