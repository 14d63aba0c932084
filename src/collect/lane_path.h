// lane_path: a lane's current stack, and the edits that change it.
//
// An edit keeps the outermost frames and pushes others. One that was seen lately is known as a
// whole (edit_cache.h). Where too many are not, the rest of a batch is decoded first and looked
// up afterwards, frame by frame (interner.h), so that the waits for memory overlap; long edits in
// parts of up to EDIT_CACHE_PUSHES frames. So what is current when an edit is decoded can be
// ahead of what is current when it is looked up, and both are kept.
//
// Edits that have a number in their lane are kept by it, with what they came to the last time: from
// the same callers' stack they come to the same. Else they are looked up as others are. Whole
// stacks that have a number are kept by it with their ids: they come to the same from anywhere.
//
// What it costs: a stack that was seen before is one lookup of a number; one that is new is a
// lookup for each frame that it does not share with the stack before. A server's thread with
// stacks of 30 frames that differ in the inner four has four lookups the first time and one after
// that.
#pragma once

#include "collect/edit_cache.h"
#include "collect/frame_map.h"
#include "collect/interner.h"
#include "wire/lane_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	// After so many parts no further edit is decoded.
	LANE_PARTS = 256,
	LANE_PARTS_MAX = LANE_PARTS + LANE_DEPTH_MAX / EDIT_CACHE_PUSHES + 1,
	// Parts of a batch that are looked up one by one, each waiting for memory by itself, to be
	// known the next time. The others of the batch wait together. Where more than one of so
	// many events is such (or of edits, where all of a batch wait), what is learned is of
	// little use, and fewer are; else more.
	LANE_MISSES_MAX = 24,
	LANE_MISSES_MIN = 2,
	LANE_MISSES_OFTEN = 3,
};

// An edit, or a part of one that is longer than a line of the cache: what is pushed is in its key.
struct lane_part {
	struct edit_cache_key key;
	struct edit_cache_line *lines; // where it would be
	const uint8_t *record;         // of which it is
	uint32_t marks;                // of the stack: LANE_PUSH_CUT, LANE_PUSH_INCOMPLETE
	uint32_t keep, push;           // frames that stay, outermost first, and that come
};

// What the readers of a collector's lanes share, since they take turns: where stacks are looked up,
// and what was decoded and is not looked up yet.
struct language;

struct lane_path_scratch {
	struct interner *interner; // borrowed
	struct language *language; // borrowed; NULL: what guests say of such frames is not read
	struct edit_cache edits;
	struct interner_push *pushes; // of the parts that are being looked up
	unsigned misses;              // parts of the batch that were not known
	unsigned misses_max;
	struct lane_part part[LANE_PARTS_MAX]; // of the batch; how many is the reader's
};

// An edit that has a number in its lane, and what it came to the last time.
struct lane_path_edit {
	uint16_t keep, push_marks; // as an edit is in a lane, without a number
	uint32_t frames[EDIT_CACHE_PUSHES];
	stack_id parent; // of the frames that were kept; LANE_PATH_UNKNOWN: nothing is known
	stack_id ids[EDIT_CACHE_PUSHES];
};

_Static_assert(sizeof(struct lane_path_edit) == 64 && (int)LANE_EDIT_FRAMES == EDIT_CACHE_PUSHES,
	       "one cache line, and as many frames as a line of the cache has");

#define LANE_PATH_UNKNOWN UINT32_MAX

// A whole stack that has a number in its lane. `edit` is as it is in a lane, without a number, and
// as many frames as a line of the cache has can be read after it.
struct lane_path_whole {
	uint32_t *edit;    // the two numbers of its head, and the frames; NULL: there is none
	stack_id *ids;     // of the frames
	uint32_t capacity; // of both, in frames
	uint32_t depth, marks;
	bool known; // the ids are
};

// What both are: frames are the guest's numbers, outermost first, and follow as many zeros as
// there are callers in a hash.
struct lane_path {
	uint32_t *frames; // ahead
	uint32_t depth;
	uint32_t *settled; // what is looked up; where nothing waits, only up to `hashed`
	uint64_t *hashes;  // of that, up to `hashed`
	stack_id *ids;     // of that, after a 0
	uint32_t hashed;
	uint32_t marks; // of that: LANE_PUSH_CUT, LANE_PUSH_INCOMPLETE
	size_t capacity;
	struct lane_path_edit *numbered; // by number, room for LANE_EDITS; NULL: there are none yet
	uint32_t numbered_count;         // those above have none yet
	struct lane_path_whole *wholes;  // by number, from LANE_EDITS on
	uint32_t wholes_count;           // LANE_WHOLES; 0: there are none yet
	uint32_t wholes_end;             // after the last that was ever given
	// Not NULL: the current stack is this one, and only depth, marks and `hashed` say so yet
	// (lane_path_spread).
	const struct lane_path_whole *whole;
};

void lane_path_fini(struct lane_path *path); // accepts { 0 }

// `interner` is borrowed until lane_path_scratch_free. One for all lanes of a collector: nothing is
// in it from one batch to the next but the cache and what it has learned about misses.
struct lane_path_scratch *lane_path_scratch_new(struct interner *interner);
void lane_path_scratch_free(struct lane_path_scratch *scratch); // NULL is allowed

// Frames and ids become what path->whole has.
void lane_path_spread_whole(struct lane_path *path);

// Before frames or ids are looked at. Where one whole stack follows the other they never are.
static inline void lane_path_spread(struct lane_path *path)
{
	if (unlikely(path->whole != NULL))
		lane_path_spread_whole(path);
}

// Where frame `depth` of a list of frames is: four zeros are before the outermost one, so that the
// hash of an edit with few callers reads zeros and not what is before the list.
static inline uint32_t *lane_path_frames(uint32_t *frames, uint32_t depth)
{
	return frames + EDIT_CACHE_CALLERS + depth;
}

// What `key` pushes comes at `frames`, and zeros after it up to EDIT_CACHE_PUSHES.
// EDIT_CACHE_PUSHES numbers are written, whatever is pushed: `frames` has room.
static inline void lane_path_put(uint32_t *frames, const struct edit_cache_key *key)
{
	_mm_storeu_si128((__m128i *)(void *)frames, _mm_srli_si128(key->low, 4));
	_mm_storeu_si128((__m128i *)(void *)(frames + 3), key->high);
}

// The guest may write while we read: what is checked must be what is used. So values that a check
// depends on are loaded once. Any alignment.
static inline uint32_t lane_path_load16(const uint8_t *in)
{
	uint16_t half;
	uint32_t value;

	memcpy(&half, in, sizeof half);
	value = half;
	__asm__("" : "+r"(value));
	return value;
}

// What a line is known by, but for the number of frames. `marks` are LANE_PUSH_CUT and
// LANE_PUSH_INCOMPLETE, or none.
static inline uint32_t lane_path_what(uint32_t tag, uint32_t marks)
{
	_Static_assert(LANE_PUSH_CUT >> 11 == EDIT_CACHE_CUT, "moved by 11");
	_Static_assert(LANE_PUSH_INCOMPLETE >> 11 == EDIT_CACHE_INCOMPLETE, "moved by 11");
	return tag | marks >> 11;
}

// The ids that a line of the cache says come after the outermost `keep`. Returns the stack. `push`
// is not 0. Hashes of what was pushed are not known.
static inline stack_id lane_path_put_ids(struct lane_path *path, const struct edit_cache_line *line,
					 uint32_t keep, uint32_t push)
{
	memcpy(&path->ids[1 + keep], line->ids, sizeof line->ids);
	if (path->hashed > keep)
		path->hashed = keep;
	return line->ids[push - 1];
}

// An edit of as many frames as a line has, and with the flags of what is looked up.
struct lane_path_look {
	struct edit_cache_key key;
	struct edit_cache_line *lines; // where it would be
	uint32_t *frames;              // ahead, where it pushes
	uint32_t keep, push;
};

// Find out where the edit at `in` would be; as many frames as a line has can be read in any case.
// False: it is none of such. `path` is changed only in that it is spread.
static inline __attribute__((always_inline)) bool lane_path_look(struct lane_path *path,
								 const struct edit_cache *cache,
								 uint32_t tag, const uint8_t *in,
								 struct lane_path_look *look)
{
	uint32_t keep = lane_path_load16(in);
	uint32_t push = lane_path_load16(in + 2) ^ path->marks;

	if (unlikely(push - 1 >= EDIT_CACHE_PUSHES || keep > path->depth ||
		     keep + EDIT_CACHE_PUSHES > path->capacity))
		return false;
	lane_path_spread(path);
	look->keep = keep;
	look->push = push;
	look->frames = lane_path_frames(path->frames, keep);
	look->key = edit_cache_key(in, lane_path_what(tag, path->marks) | push, push);
	look->lines = edit_cache_lines(cache, &look->key, look->frames);
	return true;
}

// Look the edit at `in` up as a whole, where nothing waits to be looked up, if it ends by `end`
// (NULL: it does). Returns where it ends, and what is current then; NULL: it cannot be done so.
static inline __attribute__((always_inline)) const uint8_t *
lane_path_recall(struct lane_path *path, const struct edit_cache *cache, uint32_t tag,
		 const uint8_t *in, const uint8_t *end, stack_id *stack)
{
	const struct edit_cache_line *line;
	struct lane_path_look look;
	const uint8_t *behind;

	if (unlikely(!lane_path_look(path, cache, tag, in, &look)))
		return NULL;
	behind = in + 4 + 4 * (size_t)look.push;
	if (unlikely(end != NULL && behind > end))
		return NULL;
	line = edit_cache_find(look.lines, &look.key, path->ids[look.keep]);
	if (unlikely(line == NULL))
		return NULL;
	lane_path_put(look.frames, &look.key);
	path->depth = look.keep + look.push;
	*stack = lane_path_put_ids(path, line, look.keep, look.push);
	return behind;
}

// The edit at `in`, of `record`, waits: it becomes *part, and its line is asked for. Returns where
// it ends; NULL: it cannot be done so.
static inline __attribute__((always_inline)) const uint8_t *
lane_path_wait(struct lane_path *path, const struct edit_cache *cache, uint32_t tag,
	       struct lane_part *part, const uint8_t *record, const uint8_t *in)
{
	struct lane_path_look look;

	if (unlikely(!lane_path_look(path, cache, tag, in, &look)))
		return NULL;
	edit_cache_expect(look.lines);
	part->key = look.key;
	part->lines = look.lines;
	part->record = record;
	part->marks = path->marks;
	part->keep = look.keep;
	part->push = look.push;
	lane_path_put(look.frames, &look.key);
	path->depth = look.keep + look.push;
	return in + 4 + 4 * (size_t)look.push;
}

// Edits will be decoded that wait to be looked up. Call it before the first of a batch that waits:
// from there on `frames` is ahead of `settled`.
void lane_path_part(struct lane_path *path);

// As lane_path_again, where the number is that of a whole stack. Hashes are not known then.
bool lane_path_again_whole(struct lane_path *path, uint32_t head, stack_id *stack);

// The edit whose number is in `head`, its first two bytes, comes again, and nothing waits to be
// looked up. Returns whether it comes to what it came to before: then that is current, and *stack.
static inline __attribute__((always_inline)) bool lane_path_again(struct lane_path *path,
								  uint32_t head, stack_id *stack)
{
	uint32_t number = head - LANE_KEEP_AGAIN;
	const struct lane_path_edit *edit;
	uint32_t keep, push;

	if (unlikely(number >= path->numbered_count))
		return lane_path_again_whole(path, head, stack);
	lane_path_spread(path);
	edit = &path->numbered[number];
	keep = edit->keep;
	push = edit->push_marks ^ path->marks;
	if (unlikely(keep > path->depth || path->ids[keep] != edit->parent ||
		     push > EDIT_CACHE_PUSHES))
		return false;
	memcpy(lane_path_frames(path->frames, keep), edit->frames, sizeof edit->frames);
	memcpy(&path->ids[1 + keep], edit->ids, sizeof edit->ids);
	if (path->hashed > keep)
		path->hashed = keep;
	path->depth = keep + push;
	*stack = edit->ids[push - 1];
	return true;
}

// The edit with a number, or that comes again by its number, at `in`: *length is what it takes
// there. NULL: it cannot be. Of one that is given its number here, what had the number before is
// forgotten. It is good as long as the path.
struct lane_path_edit *lane_path_find_numbered(struct lane_path *path, const uint8_t *in,
					       uint64_t left, size_t *length);

// It has just been looked up, and nothing waits. For the callers' stack that it was applied to:
// with the same one it comes to the same again.
void lane_path_learn(const struct lane_path *path, struct lane_path_edit *edit);

// The same for the edit of a whole stack. Where it comes for the first time it is kept.
struct lane_path_whole *lane_path_find_whole(struct lane_path *path, const uint8_t *in,
					     uint64_t left, size_t *length);
void lane_path_learn_whole(const struct lane_path *path, struct lane_path_whole *whole);

// Is the edit with a number, or that comes again by its number, at `in` one of a whole stack? False
// also where it cannot be known. Nothing is changed.
bool lane_path_is_whole(const uint8_t *in, uint64_t left);

// Edits of a batch will wait together from here on, since so many were not known: up to its event,
// or its edit, `item`.
static inline void lane_path_adapt(struct lane_path_scratch *scratch, size_t item)
{
	bool often = item < (size_t)scratch->misses * LANE_MISSES_OFTEN;
	unsigned most = often ? scratch->misses_max / 2 : scratch->misses_max * 2;

	scratch->misses_max = most < LANE_MISSES_MIN   ? LANE_MISSES_MIN
			      : most > LANE_MISSES_MAX ? LANE_MISSES_MAX
						       : most;
}

// Take the edit at `in`, of `record`, apart, in the same manner, whatever waits. It becomes *next
// and what follows, and *next the part after. Returns its length; 0: it cannot be.
size_t lane_path_take(struct lane_path *path, const struct edit_cache *cache, uint32_t tag,
		      struct lane_part **next, const uint8_t *record, const uint8_t *in,
		      uint64_t left);

// Look up the first `count` parts, all that was decoded: stacks[i + 1] becomes what is current
// after part i. Returns the number of parts that could be looked up: all, or as many as are before
// one that has a frame that does not exist. What is not known is learned one by one until
// scratch->misses is scratch->misses_max, and from there on looked up together, and not learned.
size_t lane_path_settle(struct lane_path *path, struct lane_path_scratch *scratch, size_t count,
			struct frame_map *frames, stack_id *stacks);
