// For example, the current stack is main, loop, parse: the guest's frames 5, 8, 9, and the trace's
// stacks 1, 2, 3. The edit "keep 2, push 11, 12" comes.
//
// If the cache has it, for callers' stack 2, then that is all: frames become 5, 8, 11, 12, and the
// ids 1, 2 and the two that the line has. What hash the frames 11 and 12 have is not known then, so
// `hashed` falls to 2.
//
// If it does not have it, it becomes a part, and waits. The next edit, "keep 3, push 14", is
// decoded on top of what is ahead, 5, 8, 11, 14. When the batch is settled, the first part is
// looked up frame by frame: catch_up makes the hashes of what is kept, ask_part those of 11 and 12,
// and asks for their places in memory; then the second part's are asked for; and then answer_part
// looks at all of them. The waits for memory overlap, which is what it is all for: one by one, each
// frame would be a cache miss.
#include "collect/lane_path.h"

#include "base/mem.h"
#include "wire/compiler.h"

enum {
	DEPTH_FIRST = 64,
	PUSHES = 1024,     // that are asked for at once
	NUMBERS_STEP = 64, // of edits, that room is made for at once
};

struct lane_path_scratch *lane_path_scratch_new(struct interner *interner)
{
	struct lane_path_scratch *scratch = mem_alloc(1, sizeof *scratch);

	scratch->interner = interner;
	scratch->misses_max = LANE_MISSES_MAX;
	edit_cache_init(&scratch->edits);
	scratch->pushes = mem_resize(NULL, PUSHES, sizeof *scratch->pushes);
	return scratch;
}

void lane_path_scratch_free(struct lane_path_scratch *scratch)
{
	if (scratch != NULL) {
		edit_cache_fini(&scratch->edits);
		mem_free(scratch->pushes);
	}
	mem_free(scratch);
}

// Callers of a stack are EDIT_CACHE_CALLERS frames before the first one: zeros, so that loads
// before the outermost frame need no check.
static COLD void grow(struct lane_path *path, size_t depth)
{
	size_t capacity = path->capacity > 0 ? path->capacity : DEPTH_FIRST;
	bool first = path->capacity == 0;

	ASSERT(depth > path->capacity);
	while (capacity < depth)
		capacity *= 2;
	path->frames = mem_resize(path->frames, EDIT_CACHE_CALLERS + capacity, sizeof(uint32_t));
	path->settled = mem_resize(path->settled, EDIT_CACHE_CALLERS + capacity, sizeof(uint32_t));
	path->hashes = mem_resize(path->hashes, capacity, sizeof *path->hashes);
	path->ids = mem_resize(path->ids, 1 + capacity, sizeof *path->ids);
	path->capacity = capacity;
	if (first) {
		memset(path->frames, 0, EDIT_CACHE_CALLERS * sizeof(uint32_t));
		memset(path->settled, 0, EDIT_CACHE_CALLERS * sizeof(uint32_t));
		path->ids[0] = 0;
	}
}

void lane_path_fini(struct lane_path *path)
{
	MEM_FREE(path->frames, path->settled, path->hashes, path->ids);
	mem_unmap(path->numbered, LANE_EDITS * sizeof *path->numbered);
	for (uint32_t i = 0; i < path->wholes_end; i++) {
		MEM_FREE(path->wholes[i].edit, path->wholes[i].ids);
	}
	mem_unmap(path->wholes, path->wholes_count * sizeof *path->wholes);
	memset(path, 0, sizeof *path);
}

// Room for this number, and for those up to the next multiple of NUMBERS_STEP: few lanes give all.
static COLD void add_numbered(struct lane_path *path, uint32_t number)
{
	uint32_t count = (number / NUMBERS_STEP + 1) * NUMBERS_STEP;

	ASSERT(count <= LANE_EDITS);
	if (path->numbered == NULL)
		path->numbered = mem_map(LANE_EDITS * sizeof *path->numbered);
	while (path->numbered_count < count)
		path->numbered[path->numbered_count++].keep = UINT16_MAX; // no stack is so deep
}

// NULL: the number was never given, or the edit is none that can have one. For an edit that gets a
// number, the old one with it is forgotten.
struct lane_path_edit *lane_path_find_numbered(struct lane_path *path, const uint8_t *in,
					       uint64_t left, size_t *length)
{
	uint32_t head = lane_path_load16(in), push_marks = lane_path_load16(in + 2);
	uint32_t push = push_marks & LANE_PUSH_MASK, number;
	struct lane_path_edit *edit;

	if (head & LANE_KEEP_AGAIN) {
		number = head - LANE_KEEP_AGAIN;
		*length = 2;
		return number < path->numbered_count && *length <= left ? &path->numbered[number]
									: NULL;
	}
	*length = 4 + 4 * (size_t)push + 2;
	if (push == 0 || push > LANE_EDIT_FRAMES || *length > left)
		return NULL;
	number = lane_path_load16(in + 4 + 4 * (size_t)push);
	if (number >= LANE_EDITS)
		return NULL;
	if (unlikely(number >= path->numbered_count))
		add_numbered(path, number);
	edit = &path->numbered[number];
	*edit = (struct lane_path_edit){ .keep = (uint16_t)(head & LANE_KEEP_MASK),
					 .push_marks = (uint16_t)push_marks,
					 .parent = LANE_PATH_UNKNOWN };
	memcpy(edit->frames, in + 4, push * sizeof *edit->frames);
	return edit;
}

// The edit's ids, for the stack that it is applied to now: applied to the same parent again,
// nothing is looked up.
void lane_path_learn(const struct lane_path *path, struct lane_path_edit *edit)
{
	ASSERT(edit->keep <= path->depth &&
	       (size_t)edit->keep + EDIT_CACHE_PUSHES <= path->capacity);
	edit->parent = path->ids[edit->keep];
	memcpy(edit->ids, &path->ids[1 + edit->keep], sizeof edit->ids);
}

// ---- Whole stacks ---------------------------------------------------------------------------

bool lane_path_is_whole(const uint8_t *in, uint64_t left)
{
	uint32_t head = lane_path_load16(in);
	size_t push = lane_path_load16(in + 2) & LANE_PUSH_MASK;

	if (head & LANE_KEEP_AGAIN)
		return head - LANE_KEEP_AGAIN >= LANE_EDITS;
	return 4 + 4 * push + 2 <= left && lane_path_load16(in + 4 + 4 * push) >= LANE_EDITS;
}

// It is the edit at `in`, `push_marks` being the second of its numbers.
//
// Its frames are kept as an edit that keeps nothing, so that it can be read by the same code. Zeros
// behind it are for loads of fixed size.
static void put_whole(struct lane_path_whole *whole, const uint8_t *in, uint32_t push_marks)
{
	uint32_t depth = push_marks & LANE_PUSH_MASK;

	if (whole->capacity < depth) {
		whole->edit =
			mem_resize(whole->edit, 1 + depth + EDIT_CACHE_PUSHES, sizeof *whole->edit);
		whole->ids = mem_resize(whole->ids, depth, sizeof *whole->ids);
		whole->capacity = depth;
	}
	whole->edit[0] = push_marks << 16;
	memcpy(&whole->edit[1], in + 4, depth * sizeof *whole->edit);
	memset(&whole->edit[1 + depth], 0, EDIT_CACHE_PUSHES * sizeof *whole->edit);
	whole->depth = depth;
	whole->marks = push_marks & ~(uint32_t)LANE_PUSH_MASK;
	whole->known = false;
}

// 4,096 of them are mapped at once, and only touched where a lane has some.
struct lane_path_whole *lane_path_find_whole(struct lane_path *path, const uint8_t *in,
					     uint64_t left, size_t *length)
{
	uint32_t head = lane_path_load16(in), push_marks = lane_path_load16(in + 2);
	size_t push = push_marks & LANE_PUSH_MASK;
	uint32_t number;

	if (head & LANE_KEEP_AGAIN) {
		number = head - LANE_KEEP_AGAIN - LANE_EDITS;
		*length = 2;
		return number < path->wholes_count && path->wholes[number].edit != NULL && left >= 2
			       ? &path->wholes[number]
			       : NULL;
	}
	*length = 4 + 4 * push + 2;
	if (push - 1 >= LANE_WHOLE_FRAMES || *length > left || (head & LANE_KEEP_MASK) != 0)
		return NULL;
	number = lane_path_load16(in + 4 + 4 * push) - LANE_EDITS;
	if (number >= LANE_WHOLES)
		return NULL;
	if (path->wholes == NULL) {
		path->wholes = mem_map(LANE_WHOLES * sizeof *path->wholes);
		path->wholes_count = LANE_WHOLES;
	}
	if (number >= path->wholes_end)
		path->wholes_end = number + 1;
	lane_path_spread(path); // it may be the one that another one replaces
	put_whole(&path->wholes[number], in, push_marks);
	return &path->wholes[number];
}

void lane_path_learn_whole(const struct lane_path *path, struct lane_path_whole *whole)
{
	ASSERT(whole->depth > 0 && whole->depth <= whole->capacity && whole->depth == path->depth);
	memcpy(whole->ids, &path->ids[1], whole->depth * sizeof *whole->ids);
	whole->known = true;
}

// All frames and ids are copied.
void lane_path_spread_whole(struct lane_path *path)
{
	const struct lane_path_whole *whole = path->whole;

	ASSERT(whole->known && whole->depth == path->depth && whole->depth <= path->capacity);
	memcpy(lane_path_frames(path->frames, 0), &whole->edit[1],
	       whole->depth * sizeof *whole->edit);
	memcpy(&path->ids[1], whole->ids, whole->depth * sizeof *whole->ids);
	path->whole = NULL;
}

// Hashes are not known then.
bool lane_path_again_whole(struct lane_path *path, uint32_t head, stack_id *stack)
{
	uint32_t number = head - LANE_KEEP_AGAIN - LANE_EDITS;
	const struct lane_path_whole *whole;

	if (number >= path->wholes_count || !path->wholes[number].known)
		return false;
	whole = &path->wholes[number];
	ASSERT(whole->depth > 0 && whole->depth <= path->capacity);
	path->whole = whole;
	path->hashed = 0;
	path->depth = whole->depth;
	path->marks = whole->marks;
	*stack = whole->ids[whole->depth - 1];
	return true;
}

// Before the first edit of a batch that waits: `settled` becomes what `frames` is, as the two go
// apart from here.
void lane_path_part(struct lane_path *path)
{
	uint32_t hashed = path->hashed;

	lane_path_spread(path);
	if (path->depth > hashed)
		memcpy(lane_path_frames(path->settled, hashed),
		       lane_path_frames(path->frames, hashed),
		       (path->depth - hashed) * sizeof *path->frames);
}

// An edit that pushes more than EDIT_CACHE_PUSHES frames becomes several parts; all but the first
// keep what the one before has made. Returns its length; 0: it cannot be.
size_t lane_path_take(struct lane_path *path, const struct edit_cache *cache, uint32_t tag,
		      struct lane_part **next, const uint8_t *record, const uint8_t *in,
		      uint64_t left)
{
	uint32_t keep = lane_path_load16(in), head = lane_path_load16(in + 2);
	uint32_t marks = head & ~(uint32_t)LANE_PUSH_MASK, rest = head & LANE_PUSH_MASK;
	size_t length = 4 + 4 * (size_t)rest;
	struct lane_part *part = *next;

	ASSERT(path->whole == NULL);
	if (length > left || keep > path->depth || keep + rest > LANE_DEPTH_MAX)
		return 0;
	if (keep + rest + EDIT_CACHE_PUSHES > path->capacity)
		grow(path, keep + rest + EDIT_CACHE_PUSHES);
	path->depth = keep + rest;
	do {
		uint32_t *frames = lane_path_frames(path->frames, keep);
		uint32_t push = rest < EDIT_CACHE_PUSHES ? rest : EDIT_CACHE_PUSHES;

		*part = (struct lane_part){
			.key = edit_cache_key(in, lane_path_what(tag, marks) | push, push),
			.record = record,
			.marks = marks,
			.keep = keep,
			.push = push,
		};
		part->lines = edit_cache_lines(cache, &part->key, frames);
		edit_cache_expect(part->lines);
		lane_path_put(frames, &part->key);
		in += 4 * (size_t)push;
		keep += push;
		rest -= push;
		part++;
	} while (rest > 0);
	*next = part;
	return length;
}

// enum trace_stack_flag
static uint8_t flags_of(uint32_t marks)
{
	return (uint8_t)((marks & LANE_PUSH_CUT ? TRACE_STACK_CUT : 0) |
			 (marks & LANE_PUSH_INCOMPLETE ? TRACE_STACK_INCOMPLETE : 0));
}

// A walk over a batch's parts.
struct walk {
	struct lane_path *path;
	struct interner *interner;
	struct frame_map *frames;
	struct interner_push *pushes;
	struct edit_cache *edits;
};

// The hash of the outermost `keep` frames, if it is known.
static uint64_t hash_of(const struct lane_path *path, uint32_t keep)
{
	return keep > 0 ? path->hashes[keep - 1] : interner_root(flags_of(path->marks));
}

// Frames that came with known parts have no hashes yet. Returns the hash of the outermost `keep`.
//
// A hash is made of the caller's and the frame; so those of all frames are made from the outermost
// on.
static uint64_t catch_up(const struct walk *walk, uint32_t keep)
{
	struct lane_path *path = walk->path;
	uint64_t hash = hash_of(path, path->hashed);

	ASSERT(path->hashed <= path->capacity && keep <= path->capacity);
	for (; path->hashed < keep; path->hashed++) {
		uint32_t number = *lane_path_frames(path->settled, path->hashed);

		hash = interner_hash(hash, frame_map_get(walk->frames, number));
		path->hashes[path->hashed] = hash;
	}
	return hash_of(path, keep);
}

// Make the part's frames current but for their ids, and ask for them: push[0..part->push). False:
// one of them does not exist.
//
// Nothing is looked up yet; the memory that will be needed is only asked for (prefetch).
static bool ask_part(const struct walk *walk, const struct lane_part *part,
		     struct interner_push *push)
{
	struct lane_path *path = walk->path;
	uint32_t *settled = lane_path_frames(path->settled, part->keep);
	uint64_t hash = catch_up(walk, part->keep);

	lane_path_put(settled, &part->key);
	path->hashed = part->keep;
	for (uint32_t i = 0; i < part->push; i++) {
		frame_id frame = frame_map_get(walk->frames, settled[i]);

		if (unlikely(frame == 0))
			return false;
		hash = interner_hash(hash, frame);
		path->hashes[path->hashed++] = hash;
		push[i] = (struct interner_push){ .hash = (uint32_t)(hash >> 32), .frame = frame };
		interner_prefetch(walk->interner, hash);
	}
	return true;
}

// Look up what was asked for. Returns the part's stack.
//
// Each frame's stack id is the parent of the next one's.
static stack_id answer_part(const struct walk *walk, const struct lane_part *part,
			    const struct interner_push *push)
{
	stack_id *ids = &walk->path->ids[1 + part->keep];
	stack_id parent = ids[-1];

	for (uint32_t i = 0; i < part->push; i++) {
		parent = interner_add(walk->interner, parent, &push[i], flags_of(part->marks));
		ids[i] = parent;
	}
	return parent;
}

// The outermost end is another one now: what `part` keeps is looked up anew.
//
// A stack that is cut or incomplete has another root than one that is whole, so all of it is other
// stacks.
static COLD void change_end(const struct walk *walk, const struct lane_part *part)
{
	struct lane_path *path = walk->path;

	path->marks = part->marks;
	path->hashed = 0;
	for (uint32_t depth = 0; depth < part->keep; depth++) {
		uint64_t hash = catch_up(walk, depth + 1);
		struct interner_push push = {
			.hash = (uint32_t)(hash >> 32),
			.frame = frame_map_get(walk->frames,
					       *lane_path_frames(path->settled, depth)),
		};

		path->ids[1 + depth] = interner_add(walk->interner, path->ids[depth], &push,
						    flags_of(path->marks));
	}
}

// Look `part` up by itself, so that it is known the next time. False: it has a frame that does not
// exist.
static bool learn_part(const struct walk *walk, const struct lane_part *part, stack_id *stack)
{
	struct lane_path *path = walk->path;
	stack_id parent;

	ASSERT(part->push <= EDIT_CACHE_PUSHES);
	if (!ask_part(walk, part, walk->pushes))
		return false;
	parent = path->ids[part->keep];
	*stack = answer_part(walk, part, walk->pushes);
	if (part->push > 0 && walk->frames->tag != 0)
		edit_cache_put(walk->edits, part->lines, &part->key, parent,
			       &path->ids[1 + part->keep], part->push);
	return true;
}

// Look all of parts[0..count) up together. Returns how many there were before one that has a frame
// that does not exist.
//
// Up to 1,024 frames are asked for, and then answered; and so on. A change of the marks ends a
// round.
static size_t settle_rest(const struct walk *walk, const struct lane_part *parts, size_t count,
			  stack_id *stacks)
{
	size_t asked = 0, answered = 0;
	bool good = true;

	while (answered < count && good) {
		size_t pushes = 0, answers = 0;

		for (; asked < count && pushes + EDIT_CACHE_PUSHES <= PUSHES; asked++) {
			if (unlikely(parts[asked].marks != walk->path->marks)) {
				if (asked > answered)
					break;
				change_end(walk, &parts[asked]);
			}
			good = ask_part(walk, &parts[asked], &walk->pushes[pushes]);
			if (unlikely(!good))
				break;
			pushes += parts[asked].push;
		}
		ASSERT(pushes <= PUSHES && asked <= count);
		for (; answered < asked; answered++) {
			stacks[answered] =
				answer_part(walk, &parts[answered], &walk->pushes[answers]);
			answers += parts[answered].push;
		}
	}
	return answered;
}

// As long as the cache has nearly all, one by one; from so many misses on, the rest together.
size_t lane_path_settle(struct lane_path *path, struct lane_path_scratch *scratch, size_t count,
			struct frame_map *frames, stack_id *stacks)
{
	const struct walk walk = { path, scratch->interner, frames, scratch->pushes,
				   &scratch->edits };
	bool adapts = scratch->misses <
		      scratch->misses_max; // else it was done when they began to wait

	ASSERT(count <= LANE_PARTS_MAX && (count == 0 || path->whole == NULL));
	for (size_t i = 0; i < count; i++) {
		const struct lane_part *part = &scratch->part[i];
		const struct edit_cache_line *line;

		if (unlikely(part->marks != path->marks))
			change_end(&walk, part);
		if (unlikely(part->push == 0)) {
			stacks[i + 1] = path->ids[part->keep];
			continue;
		}
		line = edit_cache_find(part->lines, &part->key, path->ids[part->keep]);
		if (likely(line != NULL)) {
			lane_path_put(lane_path_frames(path->settled, part->keep), &part->key);
			stacks[i + 1] = lane_path_put_ids(path, line, part->keep, part->push);
			scratch->edits.found++;
		} else if (scratch->misses++ >= scratch->misses_max) {
			if (adapts)
				lane_path_adapt(scratch, i);
			return i + settle_rest(&walk, part, count - i, &stacks[i + 1]);
		} else if (!learn_part(&walk, part, &stacks[i + 1])) {
			return i;
		}
	}
	return count;
}
