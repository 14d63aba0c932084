// For example, in a native stack `eval` is the interpreter's evaluator, and Py_Main and call are
// its own frames, too:
//
//     native, outermost first      main  Py_Main  eval  call  eval  malloc's caller
//     of the language              a (first in its evaluator), b, c (first in its evaluator)
//     put together                 main           a, b        c     malloc's caller
//
// There are two evaluators and two groups, so each evaluator gets one. If the list of the language
// had been cut, and only c were known, the groups would be assigned from the innermost on: one
// group is left when the second evaluator comes, and the first gets nothing.
//
// Both are kept as trees: list a, b, c is a node (outer: the node of a, b; frame: c). So a pair is
// (stack, node), 64 bits, and is put together once.
//
// Nor is all of a pair put together that is new. Where a native stack ends in an evaluator, what it
// and a list come to is kept (`bases`), and a pair goes on from the nearest of these: if c has gone
// on to its next line, c', the pair's inner end is taken off until main … eval with a, b, c' has
// become main … call with a, b, and that main … eval with a, b, which is known; call is put on top
// of that, then c', and malloc's caller.
//
// Native stacks that differ in what is left out alone come to the same with every list: a parser
// that calls itself, an evaluator that calls from another place in it. The first one that came
// stands for all of them (`alike`), and only its pairs are put together.
#include "collect/language.h"

#include "base/mem.h"

#include <string.h>

_Static_assert(LANGUAGE_RECENT == 1 << (32 - 22),
	       "a pair's place is the upper ten bits of its hash");

void language_init(struct language *language, struct interner *interner, bool native)
{
	memset(language, 0, sizeof *language);
	language->interner = interner;
	language->native = native;
	language->nodes_count = LANGUAGE_CUT + 1;
	language->nodes = mem_grow(NULL, &language->nodes_capacity, language->nodes_count,
				   sizeof *language->nodes);
	memset(language->nodes, 0, language->nodes_count * sizeof *language->nodes);
}

void language_fini(struct language *language)
{
	MEM_FREE(language->flags, language->nodes, language->recent, language->alike);
	MAP_FINI(&language->nodes_by, &language->merged, &language->bases_by);
	MAP_FINI(&language->alike_by, &language->unsure_pairs);
	MEM_FREE(language->frames, language->own, language->bases);
	MEM_FREE(language->inner, language->marks);
	memset(language, 0, sizeof *language);
}

// One byte for each frame of the trace; the array is doubled from 1,024 on.
void language_mark(struct language *language, frame_id frame, uint8_t flags)
{
	size_t before = language->flags_count;

	if (flags == 0)
		return;
	if (frame >= before) {
		size_t count = before > 0 ? before : 1024;

		while (count <= frame)
			count *= 2;
		language->flags = mem_resize(language->flags, count, 1);
		memset(language->flags + before, 0, count - before);
		language->flags_count = count;
	}
	language->flags[frame] |= flags;
}

static uint8_t flags_of(const struct language *language, frame_id frame)
{
	return frame < language->flags_count ? language->flags[frame] : 0;
}

// Nodes 0 and LANGUAGE_CUT are the roots: of a whole list, and of one whose outermost frames are
// missing.
uint32_t language_push(struct language *language, uint32_t outer, uint32_t frame)
{
	uint64_t *node = map_put(&language->nodes_by, (uint64_t)outer << 32 | frame, NULL);

	ASSERT(outer < language->nodes_count);
	if (*node == 0) {
		*node = language->nodes_count;
		*MEM_ADD(language->nodes, language->nodes_count, language->nodes_capacity) =
			(struct language_node){ .outer = outer, .frame = frame };
	}
	return (uint32_t)*node;
}

// Whether a frame is the interpreter's own, also by what it calls, whose flags are `inner`: CPython
// generates code for each function that only calls the evaluator (PYTHONPERFSUPPORT).
static bool is_own(uint8_t flags, uint8_t inner)
{
	return (flags & LANGUAGE_INTERPRETER) ||
	       ((flags & LANGUAGE_GENERATED) && (inner & LANGUAGE_EVALUATOR));
}

// What stands for a frame that is left out, where that says something all the same.
#define ALIKE_EVALUATOR UINT32_MAX
#define ALIKE_OUTERMOST (UINT32_MAX - 1)

// The first stack of those that are like `stack`, whose callers are known.
//
// It says what the stack ends in, if that stays or is an evaluator, and what the callers are like.
// For example, of main, eval, call, parse, parse, in which all but main are the interpreter's, main
// stands for itself, main eval for all the others.
static stack_id first_alike(struct language *language, stack_id stack)
{
	struct interner_row row = interner_get(language->interner, stack);
	uint8_t flags = flags_of(language, row.frame), root = row.flags;
	bool own = is_own(flags, 0);
	stack_id outer = row.parent != 0 ? language->alike[row.parent] : 0;
	uint64_t *first;

	if ((flags & LANGUAGE_EVALUATOR) && row.parent != 0) {
		struct interner_row caller = interner_get(language->interner, row.parent);
		uint8_t around = flags_of(language, caller.frame);

		// Of itself the caller stays, but it is left out where it calls an evaluator.
		if (!is_own(around, 0) && is_own(around, flags)) {
			if (around & LANGUAGE_EVALUATOR)
				return stack;
			outer = caller.parent != 0 ? language->alike[caller.parent] : 0;
			root = caller.flags;
		}
	}
	if (own && !(flags & LANGUAGE_EVALUATOR)) {
		if (outer != 0)
			return outer;
		row.frame = ALIKE_OUTERMOST;
	} else if (own) {
		row.frame = ALIKE_EVALUATOR;
	}
	first = map_put(&language->alike_by, interner_key(outer, row.frame, root), NULL);
	if (*first == 0)
		*first = stack;
	return (stack_id)*first;
}

// The stack that stands for `stack`, or 0.
//
// From the first of its callers on that it is not known of.
static stack_id alike(struct language *language, stack_id stack)
{
	stack_id at = stack;
	size_t count = 0;

	if (language->native || stack == 0)
		return stack;
	(void)MEM_REACH(language->alike, language->alike_capacity, stack);
	while (at != 0 && language->alike[at] == 0) {
		*MEM_ADD(language->frames, count, language->frames_capacity) = at;
		at = interner_get(language->interner, at).parent;
	}
	while (count > 0) {
		at = language->frames[--count];
		language->alike[at] = first_alike(language, at);
	}
	return language->alike[stack];
}

// A stack while it is put together.
struct merging {
	struct language *language;
	size_t frames_count, own_count; // of both, that are left, from the outermost
	size_t groups;                  // of the latter
	struct language_base made;      // so far
};

static void add(struct merging *merging, frame_id frame)
{
	struct interner_push push;

	merging->made.hash = interner_hash(merging->made.hash, frame);
	push = (struct interner_push){ .hash = (uint32_t)(merging->made.hash >> 32),
				       .frame = frame };
	merging->made.stack = interner_add(merging->language->interner, merging->made.stack, &push,
					   merging->made.flags);
}

// The language's frames of one evaluator, or those before the first that begins one.
static void add_group(struct merging *merging)
{
	const struct language *language = merging->language;

	if (merging->own_count == 0)
		return;
	ASSERT(merging->groups > 0);
	do {
		frame_id frame = language->own[--merging->own_count] & ~LANGUAGE_ENTRY;

		if (frame != 0)
			add(merging, frame);
	} while (merging->own_count > 0 &&
		 !(language->own[merging->own_count - 1] & LANGUAGE_ENTRY));
	merging->groups--;
}

// Take both stacks apart. Returns how many evaluators the native one has.
//
// Both as arrays, innermost first.
static size_t take_apart(struct merging *merging, stack_id stack, uint32_t node)
{
	struct language *language = merging->language;
	size_t evaluators = 0;

	while (stack != 0) {
		struct interner_row row = interner_get(language->interner, stack);

		*MEM_ADD(language->frames, merging->frames_count, language->frames_capacity) =
			row.frame;
		evaluators += (flags_of(language, row.frame) & LANGUAGE_EVALUATOR) != 0;
		merging->made.flags = row.flags;
		stack = row.parent;
	}
	while (node > LANGUAGE_CUT) {
		const struct language_node *at = &language->nodes[node];

		*MEM_ADD(language->own, merging->own_count, language->own_capacity) = at->frame;
		merging->groups += (at->frame & LANGUAGE_ENTRY) || at->outer <= LANGUAGE_CUT;
		node = at->outer;
	}
	if (node == LANGUAGE_CUT)
		merging->made.flags |= TRACE_STACK_CUT;
	return evaluators;
}

// The whole of a pair, from its outermost frame on.
//
// Where one of both lacks outer frames, they fit from the innermost evaluator on.
static void put_whole(struct merging *merging, stack_id stack, uint32_t node)
{
	struct language *language = merging->language;
	size_t evaluators = take_apart(merging, stack, node);

	merging->made.hash = interner_root(merging->made.flags);
	merging->made.unsure = !(merging->made.flags & TRACE_STACK_CUT) &&
			       evaluators != merging->groups;
	while (merging->groups > evaluators)
		add_group(merging);
	while (merging->frames_count > 0) {
		frame_id frame = language->frames[--merging->frames_count];
		uint8_t flags = flags_of(language, frame);
		uint8_t inner =
			merging->frames_count > 0
				? flags_of(language, language->frames[merging->frames_count - 1])
				: 0;

		if (language->native || !is_own(flags, inner))
			add(merging, frame);
		if ((flags & LANGUAGE_EVALUATOR) && merging->groups >= evaluators--)
			add_group(merging);
	}
}

static uint64_t key_of(stack_id stack, uint32_t node)
{
	return (uint64_t)node << 32 | stack;
}

// What lies inside of what is put together first.
struct taken {
	size_t inner_count, marks_count; // of language->inner and ->marks
	// The pair that is outside of it, whose native stack ends in an evaluator, unless it is the
	// whole of the pair that came.
	stack_id stack;
	uint32_t node;
};

static void take_frame(struct language *language, struct taken *taken, frame_id frame)
{
	*MEM_ADD(language->inner, taken->inner_count, language->inner_capacity) = frame;
}

// Take native frames off until the stack ends in an evaluator. `inner`: flags of the frame inside
// of them. 0: there is none.
static stack_id take_native(struct language *language, struct taken *taken, stack_id stack,
			    uint8_t inner)
{
	while (stack != 0) {
		struct interner_row row = interner_get(language->interner, stack);
		uint8_t flags = flags_of(language, row.frame);

		if (flags & LANGUAGE_EVALUATOR)
			break;
		if (language->native || !is_own(flags, inner))
			take_frame(language, taken, row.frame);
		inner = flags;
		stack = row.parent;
	}
	return alike(language, stack);
}

// Take the innermost frame off the list, and the evaluator as well if it was its first. False: what
// is left has no list, or no evaluator.
static bool take_listed(struct language *language, struct taken *taken)
{
	const struct language_node *last = &language->nodes[taken->node];
	struct interner_row row;
	size_t before = taken->inner_count;
	stack_id stack = taken->stack;

	if (last->outer <= LANGUAGE_CUT)
		return false;
	if ((last->frame & ~LANGUAGE_ENTRY) != 0)
		take_frame(language, taken, last->frame & ~LANGUAGE_ENTRY);
	if (last->frame & LANGUAGE_ENTRY) {
		row = interner_get(language->interner, stack);
		if (language->native || !is_own(flags_of(language, row.frame), 0))
			take_frame(language, taken, row.frame);
		stack = take_native(language, taken, row.parent, LANGUAGE_EVALUATOR);
	}
	if (stack == 0) {
		taken->inner_count = before;
		return false;
	}
	taken->stack = stack;
	taken->node = last->outer;
	return true;
}

// Take frames off the pair from its inner end on, until what is left is known. NULL: nothing is,
// and what is left is to be put together as a whole.
static const struct language_base *take_inner(struct language *language, struct taken *taken)
{
	stack_id stack = take_native(language, taken, taken->stack, 0);
	const uint64_t *known;

	if (stack == 0) {
		taken->inner_count = 0;
		return NULL;
	}
	taken->stack = stack;
	do {
		uint64_t key = key_of(taken->stack, taken->node);

		known = map_find(&language->bases_by, key);
		if (known != NULL)
			return &language->bases[*known];
		*MEM_ADD(language->marks, taken->marks_count, language->marks_capacity) =
			(struct language_kept){ key, taken->inner_count };
	} while (take_listed(language, taken));
	return NULL;
}

// What was put together is what the pair comes to that `mark` was taken for.
static void keep_base(const struct merging *merging, const struct language_kept *mark)
{
	struct language *language = merging->language;

	*map_put(&language->bases_by, mark->key, NULL) = language->bases_count;
	*MEM_ADD(language->bases, language->bases_count, language->bases_capacity) = merging->made;
}

#define PAIR_UNSURE (UINT64_C(1) << 32) // beside the stack that a pair comes to

// Whether a pair is unsure follows from what is left when its inner end is taken off.
static uint64_t put_together(struct language *language, stack_id stack, uint32_t node)
{
	struct merging merging = { .language = language };
	struct taken taken = { .stack = stack, .node = node };
	const struct language_base *base = take_inner(language, &taken);

	if (base != NULL)
		merging.made = *base;
	else
		put_whole(&merging, taken.stack, taken.node);
	for (size_t left = taken.inner_count;; add(&merging, language->inner[--left])) {
		while (taken.marks_count > 0 &&
		       language->marks[taken.marks_count - 1].inner_count == left)
			keep_base(&merging, &language->marks[--taken.marks_count]);
		if (left == 0)
			break;
	}
	return merging.made.stack | (merging.made.unsure ? PAIR_UNSURE : 0);
}

// Of a pair that is not among the last ones. `unsure` counts pairs of each native stack itself.
static COLD stack_id find_merged(struct language *language, stack_id stack, uint32_t node)
{
	stack_id first = alike(language, stack);
	bool is_new;
	uint64_t *merged = map_put(&language->merged, key_of(first, node), &is_new);

	if (is_new)
		*merged = put_together(language, first, node);
	if (unlikely(*merged & PAIR_UNSURE)) {
		(void)map_put(&language->unsure_pairs, key_of(stack, node), &is_new);
		language->unsure += is_new;
	}
	return (stack_id)*merged != 0 ? (stack_id)*merged : stack;
}

// 1,024 recent pairs, direct-mapped, before the map of all.
stack_id language_merge(struct language *language, stack_id stack, uint32_t node)
{
	uint64_t key = key_of(stack, node);
	struct language_pair *pair;

	ASSERT(stack != 0 && node > LANGUAGE_CUT && node < language->nodes_count);
	if (unlikely(language->recent == NULL)) {
		language->recent = mem_alloc(LANGUAGE_RECENT, sizeof *language->recent);
		interner_tell_late(language->interner);
	}
	pair = &language->recent[(stack * 0x9e3779b1u ^ node * 0x85ebca6bu) >> 22];
	if (likely(pair->key == key))
		return pair->merged;
	*pair = (struct language_pair){ .key = key, .merged = find_merged(language, stack, node) };
	return pair->merged;
}
