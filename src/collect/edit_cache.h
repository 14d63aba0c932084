// edit_cache: changes of stacks that were seen lately, and what they led to.
//
// Programs go back and forth between few stacks: sqlite3 comes from some 400 to others, python3
// from some 10,000. So a change that was seen before, from the same callers and with the same
// frames, is looked up as a whole, in one cache line, instead of frame by frame. A line is known by
// all that it was made of; the hash only says where to look, in two lines side by side. It is made
// of the frames that are pushed and of the nearest callers' frames, none of which has to be looked
// up first: so the lines of many changes can be asked for before the first of them is there.
//
// Frames are the guest's own numbers, so each image has a tag of its own. One thread.
//
//     key = edit_cache_key(in, tag | flags | push, push)      frames are at in + 4
//     lines = edit_cache_lines(cache, &key, callers)
//     edit_cache_expect(lines)                          and the same of other edits meanwhile
//     line = edit_cache_find(lines, &key, parent)       line->ids[push - 1] is the stack
//     edit_cache_put(cache, lines, &key, parent, ids, push)       line was NULL
#pragma once

#include "base/mem.h"
#include "base/sse2.h"
#include "trace/trace.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EDIT_CACHE_PUSHES = 7,  // frames of a line
	EDIT_CACHE_CALLERS = 4, // of their callers' frames, that many are in the hash
	EDIT_CACHE_WAYS = 2,
	EDIT_CACHE_BITS_FEW = 12, // of the hash, in the table that a cache begins with
	EDIT_CACHE_BITS_MANY = 15,
};

// One change that was seen: what it was made of, and what it led to. ids[i] is the stack whose
// innermost frame is frames[i]; of both, those from the number of frames on mean nothing.
struct edit_cache_line {
	uint32_t what; // tag, flags of the stack, number of frames; 0: free
	uint32_t frames[EDIT_CACHE_PUSHES];
	stack_id parent; // whose innermost frames are exchanged for these
	stack_id ids[EDIT_CACHE_PUSHES];
};

_Static_assert(sizeof(struct edit_cache_line) == 64, "one cache line");

// Few programs have many changes, and memory that is touched for the first time costs: so there are
// two tables, and the larger one takes the place of the other where that has lost as many lines as
// it has. Lines of the first stay where they are until the end, and what they say stays true.
struct edit_cache {
	struct edit_cache_line *lines;      // two and two
	uint32_t shift;                     // of the hash
	uint64_t found;                     // edits that had a line, as its user counts them
	uint64_t lost;                      // lines with an edit that another took
	uint32_t tags;                      // given out
	struct edit_cache_line *few, *many; // NULL: not made
};

// Takes the small table, 512 KB of addresses, at once; the large one, 4 MB, when it is needed.
void edit_cache_init(struct edit_cache *cache);
void edit_cache_fini(struct edit_cache *cache); // accepts { 0 }

// A tag for another image, a multiple of EDIT_CACHE_TAG; 0 if there are none left. Without a tag
// nothing of an image is kept here: each of its edits is looked up frame by frame.
uint32_t edit_cache_tag(struct edit_cache *cache);

// What a line is known by, but for the parent.
struct edit_cache_key {
	__m128i low, high; // as the beginning of a line
};

// The first word of a line is made of an image's tag, of flags, and of the number of frames.
enum {
	EDIT_CACHE_CUT = 1 << 3,        // outer frames are missing (LANE_PUSH_CUT)
	EDIT_CACHE_INCOMPLETE = 1 << 4, // not proven to reach the root (LANE_PUSH_INCOMPLETE)
	EDIT_CACHE_TAG = 1 << 5,        // the first
	EDIT_CACHE_TAGS = 1 << 27,      // they fill the bits above those five
};

// The key of `push` frames at `in` + 4; from `in` on, 4 + 4 * EDIT_CACHE_PUSHES bytes can be read.
// They are read once. `what` is the line's first word, whole.
static inline struct edit_cache_key edit_cache_key(const uint8_t *in, uint32_t what, uint32_t push)
{
	static const uint32_t masks[2 * EDIT_CACHE_PUSHES + 1] = {
		-1u, -1u, -1u, -1u, -1u, -1u, -1u
	};
	const uint32_t *mask = masks + EDIT_CACHE_PUSHES - push;
	__m128i low = _mm_loadu_si128((const __m128i *)(const void *)in);
	__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + 16));
	struct edit_cache_key key;

	// What is before the frames, and those that are not pushed, are not compared.
	key.high = _mm_and_si128(high, _mm_loadu_si128((const __m128i *)(const void *)(mask + 3)));
	low = _mm_and_si128(_mm_srli_si128(low, 4),
			    _mm_loadu_si128((const __m128i *)(const void *)mask));
	key.low = _mm_or_si128(_mm_slli_si128(low, 4), _mm_cvtsi32_si128((int)what));
	__asm__("" : "+x"(key.low), "+x"(key.high));
	return key;
}

// Four numbers, each by one of its own, added up in two sums.
static inline __m128i edit_cache_mix(__m128i numbers, __m128i even, __m128i odd)
{
	return _mm_add_epi64(_mm_mul_epu32(numbers, even),
			     _mm_mul_epu32(_mm_srli_epi64(numbers, 32), odd));
}

// The two lines where that edit would be. The frames of its callers end before `callers`. The
// pointer stays good when the table grows, as the small one is kept.
static inline struct edit_cache_line *edit_cache_lines(const struct edit_cache *cache,
						       const struct edit_cache_key *key,
						       const uint32_t *callers)
{
	__m128i near =
		_mm_loadu_si128((const __m128i *)(const void *)(callers - EDIT_CACHE_CALLERS));
	__m128i sums = edit_cache_mix(key->low, _mm_set_epi32(0, 0x78bd642f, 0, (int)0xa0761d65),
				      _mm_set_epi32(0, (int)0xa0b428db, 0, (int)0xe7037ed1));
	uint64_t hash;

	sums = _mm_add_epi64(sums,
			     edit_cache_mix(key->high,
					    _mm_set_epi32(0, (int)0x9c88c6e3, 0, (int)0x8ebc6af1),
					    _mm_set_epi32(0, 0x75374cc3, 0, 0x589965cd)));
	sums = _mm_add_epi64(sums,
			     edit_cache_mix(near, _mm_set_epi32(0, (int)0xc47d124f, 0, 0x1d8e4e27),
					    _mm_set_epi32(0, (int)0xb455d165, 0, (int)0xeb44acc9)));
	sums = _mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums));
	hash = (uint64_t)_mm_cvtsi128_si64(sums) * UINT64_C(0x9e3779b97f4a7c15) >> cache->shift;
	return &cache->lines[hash * EDIT_CACHE_WAYS];
}

// The lines will soon be looked at.
static inline void edit_cache_expect(const struct edit_cache_line *lines)
{
	mem_expect(&lines[0]);
	mem_expect(&lines[1]);
}

// Whether the line is of this edit: its first 32 bytes (tag, flags, count, frames) and the parent's
// id.
static inline bool edit_cache_is(const struct edit_cache_line *line,
				 const struct edit_cache_key *key, stack_id parent)
{
	__m128i low = _mm_load_si128((const __m128i *)(const void *)line);
	__m128i high = _mm_load_si128((const __m128i *)(const void *)&line->frames[3]);
	__m128i same =
		_mm_and_si128(_mm_cmpeq_epi8(low, key->low), _mm_cmpeq_epi8(high, key->high));

	return _mm_movemask_epi8(same) == 0xffff && line->parent == parent;
}

// Which of both lines is of this edit; NULL: none. It is good until the next edit_cache_put, which
// may move it to the other line or lose it.
static inline const struct edit_cache_line *edit_cache_find(const struct edit_cache_line *lines,
							    const struct edit_cache_key *key,
							    stack_id parent)
{
	if (likely(edit_cache_is(&lines[0], key, parent)))
		return &lines[0];
	return edit_cache_is(&lines[1], key, parent) ? &lines[1] : NULL;
}

// The first line is of this edit now, and the second of what the first was; ids[0..push) are those
// of its frames. The lines may have been asked for a while ago.
void edit_cache_put(struct edit_cache *cache, struct edit_cache_line *lines,
		    const struct edit_cache_key *key, stack_id parent, const stack_id *ids,
		    uint32_t push);
