// edit_cache: changes of stacks that were seen lately, and what they led to.
//
// Programs go back and forth between few stacks: sqlite3 comes from some 400 to others, python3
// from some 10,000. So a change that was seen before, from the same callers and with the same
// frames, is looked up as a whole, in one cache line, instead of frame by frame. A line is known by
// all that it was made of; the hash only says where to look. Longer changes than a line holds are
// not in it.
//
// Frames are the guest's own numbers, so each image has a tag of its own. One thread.
#ifndef COLLECT_EDIT_CACHE_H
#define COLLECT_EDIT_CACHE_H

#include "trace/trace.h"

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

enum {
	EDIT_CACHE_PUSHES = 7, // frames of a line
	EDIT_CACHE_BITS = 14,
	EDIT_CACHE_LINES = 1 << EDIT_CACHE_BITS,
	EDIT_CACHE_TAGS = 1 << 29, // 0: an image that is not cached
};

struct edit_cache_line {
	uint32_t what; // tag, and number of frames; 0: free
	uint32_t frames[EDIT_CACHE_PUSHES];
	stack_id parent; // whose innermost frames are exchanged for these
	stack_id ids[EDIT_CACHE_PUSHES];
};

_Static_assert(sizeof(struct edit_cache_line) == 64, "one cache line");

struct edit_cache {
	struct edit_cache_line *lines; // EDIT_CACHE_LINES
	uint32_t tags;                 // given out
};

void edit_cache_init(struct edit_cache *cache);
void edit_cache_fini(struct edit_cache *cache); // accepts { 0 }

// A tag for another image; 0 if there are none left.
uint32_t edit_cache_tag(struct edit_cache *cache);

// What a line is known by, but for the parent.
struct edit_cache_key {
	__m128i low, high;
};

// The key of the edit at `in`, of which 4 + 4 * EDIT_CACHE_PUSHES bytes can be read. They are read
// once.
static inline struct edit_cache_key edit_cache_key(const uint8_t *in, uint32_t tag, uint32_t push)
{
	static const uint32_t masks[2 * EDIT_CACHE_PUSHES + 1] = {
		-1u, -1u, -1u, -1u, -1u, -1u, -1u
	};
	const uint32_t *mask = masks + EDIT_CACHE_PUSHES - push;
	const uint32_t head = tag << 3 | push;
	__m128i low = _mm_loadu_si128((const __m128i *)(const void *)in);
	__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + 16));
	struct edit_cache_key key;

	// The head's place, and frames that are not pushed, are not compared.
	key.high = _mm_and_si128(high, _mm_loadu_si128((const __m128i *)(const void *)(mask + 3)));
	low = _mm_and_si128(_mm_srli_si128(low, 4),
			    _mm_loadu_si128((const __m128i *)(const void *)mask));
	key.low = _mm_or_si128(_mm_slli_si128(low, 4), _mm_cvtsi32_si128((int)head));
	__asm__("" : "+x"(key.low), "+x"(key.high));
	return key;
}

// The line where that edit of `parent` would be.
static inline struct edit_cache_line *
edit_cache_line(const struct edit_cache *cache, const struct edit_cache_key *key, stack_id parent)
{
	uint64_t words[4], hash;

	_mm_storeu_si128((__m128i *)(void *)words, key->low);
	_mm_storeu_si128((__m128i *)(void *)(words + 2), key->high);
	hash = (words[0] ^ (uint64_t)parent << 32) * UINT64_C(0x9e3779b97f4a7c15) +
	       words[1] * UINT64_C(0xd6e8feb86659fd93) + words[2] * UINT64_C(0xa0761d6478bd642f) +
	       words[3] * UINT64_C(0xe7037ed1a0b428db);
	return &cache->lines[(hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15) >>
			     (64 - EDIT_CACHE_BITS)];
}

static inline bool edit_cache_is(const struct edit_cache_line *line,
				 const struct edit_cache_key *key, stack_id parent)
{
	__m128i low = _mm_load_si128((const __m128i *)(const void *)line);
	__m128i high = _mm_load_si128((const __m128i *)(const void *)&line->frames[3]);
	__m128i same =
		_mm_and_si128(_mm_cmpeq_epi8(low, key->low), _mm_cmpeq_epi8(high, key->high));

	return _mm_movemask_epi8(same) == 0xffff && line->parent == parent;
}

// The line is of this edit now; ids[0..push) are those of its frames.
static inline void edit_cache_put(struct edit_cache_line *line, const struct edit_cache_key *key,
				  stack_id parent, const stack_id *ids, uint32_t push)
{
	_mm_store_si128((__m128i *)(void *)line, key->low);
	_mm_store_si128((__m128i *)(void *)&line->frames[3], key->high);
	line->parent = parent;
	memcpy(line->ids, ids, push * sizeof *ids);
}

#endif
