// How the table grows in place. The upper bits of a stack's hash name its bucket: of 1,024 buckets,
// hash 0x80200000 has bucket 0x80200000 >> 22 = 512, and of 2,048 it has 0x80200000 >> 21 = 1,025.
// What is in bucket b goes to 2b or 2b + 1, which are never before b. So from the last bucket down
// to the first, each is emptied and its stacks are put where they belong, and nothing has to be
// copied to a second table. Two kinds of stacks cannot be put at once: those that had found no room
// in their own bucket and had gone on to one far after it, and those whose buckets are full up to
// the table's end. They wait in a list, which is a handful, until all buckets were emptied.
//
// 1,024 buckets have 4,096 places, and are doubled with stack number 2,561: five eighths are full.
#include "collect/interner.h"

#include <string.h>

enum { BITS_FIRST = 10 };

// Room for 2^bits buckets, where the table is; those that were not there are free.
static void set_capacity(struct interner *interner, unsigned bits)
{
	ASSERT(bits >= BITS_FIRST && bits < 32);
	interner->buckets_count = (size_t)1 << bits;
	interner->shift = 32 - bits;
	mem_area_grow(&interner->area, interner->buckets_count * sizeof *interner->buckets);
	interner->buckets = interner->area.at;
}

void interner_init(struct interner *interner, struct writer *writer)
{
	memset(interner, 0, sizeof *interner);
	interner->writer = writer;
	set_capacity(interner, BITS_FIRST);
}

void interner_fini(struct interner *interner)
{
	mem_area_fini(&interner->area);
	MEM_FREE(interner->keys, interner->walked, interner->told);
	memset(interner, 0, sizeof *interner);
}

// The bucket behind `bucket`.
//
// The last one's is the first: full buckets run on in a circle.
static struct interner_bucket *next_of(const struct interner *interner,
				       struct interner_bucket *bucket)
{
	size_t at = (size_t)(bucket - interner->buckets) + 1;

	return &interner->buckets[at & (interner->buckets_count - 1)];
}

// A stack that has no place, for the moment.
struct homeless {
	uint64_t key;
	uint32_t hash;
	stack_id id;
};

// Put a stack that is not there.
static void put(struct interner *interner, const struct homeless *stack)
{
	struct interner_bucket *bucket = interner_bucket(interner, stack->hash);
	size_t at = 0;

	ASSERT(stack->id != 0);
	while (bucket->ids[INTERNER_SLOTS - 1] != 0)
		bucket = next_of(interner, bucket);
	while (bucket->ids[at] != 0)
		at++;
	bucket->keys[at] = stack->key;
	bucket->hashes[at] = stack->hash;
	bucket->ids[at] = stack->id;
}

// Whether the bucket that the hash names, and those behind it up to one with a free place, are
// `from` or behind that.
static bool is_settled(const struct interner *interner, uint32_t hash, size_t from)
{
	size_t at = hash >> interner->shift;

	if (at < from)
		return false;
	while (at < interner->buckets_count && interner->buckets[at].ids[INTERNER_SLOTS - 1] != 0)
		at++;
	return at < interner->buckets_count;
}

// Twice the places. The hash's upper bits name a bucket, so that what was in one goes to the two
// with twice its number, further back: from the last one on, all of it can be moved where it lies.
// What would have to go to a bucket that has not been emptied yet waits: it came to its own from
// one far in front of it, or would go on at the table's beginning.
static COLD void grow(struct interner *interner)
{
	size_t old_count = interner->buckets_count;
	struct homeless *waiting = NULL;
	size_t waiting_count = 0, waiting_capacity = 0;

	ASSERT(interner->shift > 1);
	set_capacity(interner, 32 - interner->shift + 1);
	for (size_t i = old_count; i-- > 0;) {
		struct interner_bucket old = interner->buckets[i];

		memset(&interner->buckets[i], 0, sizeof interner->buckets[i]);
		for (size_t at = 0; at < INTERNER_SLOTS && old.ids[at] != 0; at++) {
			struct homeless stack = { old.keys[at], old.hashes[at], old.ids[at] };

			if (likely(is_settled(interner, stack.hash, i))) {
				put(interner, &stack);
				continue;
			}
			*MEM_ADD(waiting, waiting_count, waiting_capacity) = stack;
		}
	}
	for (size_t i = 0; i < waiting_count; i++)
		put(interner, &waiting[i]);
	mem_free(waiting);
}

static COLD void keep_key(struct interner *interner, stack_id id, uint64_t key)
{
	MEM_ROOM(interner->keys, interner->keys_capacity, (size_t)id + 1);
	interner->keys[id] = key;
}

static COLD void keep_keys(struct interner *interner)
{
	keep_key(interner, 0, 0);
	for (size_t i = 0; i < interner->buckets_count; i++)
		for (size_t at = 0; at < INTERNER_SLOTS; at++)
			if (interner->buckets[i].ids[at] != 0)
				keep_key(interner, interner->buckets[i].ids[at],
					 interner->buckets[i].keys[at]);
}

// Keys by id are only kept once somebody asks: a recording without samples and languages never
// does.
struct interner_row interner_get(struct interner *interner, stack_id id)
{
	uint32_t callers;

	if (interner->keys == NULL)
		keep_keys(interner);
	ASSERT(id != 0 && id < interner->keys_capacity);
	callers = (uint32_t)(interner->keys[id] >> 32);
	if (callers >= UINT32_MAX - UINT8_MAX)
		return (struct interner_row){ .frame = (frame_id)interner->keys[id],
					      .flags = (uint8_t)(UINT32_MAX - callers) };
	return (struct interner_row){ .parent = callers, .frame = (frame_id)interner->keys[id] };
}

// What has a number already has it in the trace, too. Numbers here and there go apart from here.
void interner_tell_late(struct interner *interner)
{
	stack_id next = writer_counts(interner->writer)->stacks;

	if (interner->told != NULL)
		return;
	if (interner->keys == NULL)
		keep_keys(interner);
	MEM_ROOM(interner->told, interner->told_capacity, next);
	while (interner->told_count < next) {
		interner->told[interner->told_count] = (stack_id)interner->told_count;
		interner->told_count++;
	}
}

// The flags of its outermost end, which all stacks above that have.
static uint8_t flags_of(struct interner *interner, stack_id id)
{
	struct interner_row row = interner_get(interner, id);

	while (row.parent != 0)
		row = interner_get(interner, row.parent);
	return row.flags;
}

// From the stack itself to the first of its callers that the trace has, and back.
stack_id interner_tell_new(struct interner *interner, stack_id id)
{
	uint8_t flags = flags_of(interner, id);
	stack_id parent = id;
	size_t count = 0;

	while (parent != 0 && interner->told[parent] == 0) {
		*MEM_ADD(interner->walked, count, interner->walked_capacity) = parent;
		parent = interner_get(interner, parent).parent;
	}
	parent = interner->told[parent];
	while (count > 0) {
		id = interner->walked[--count];
		parent = writer_add_stack(interner->writer, parent,
					  interner_get(interner, id).frame, flags);
		interner->told[id] = parent;
	}
	return parent;
}

// The number of a new stack.
static stack_id next_id(struct interner *interner, stack_id parent, frame_id frame, uint8_t flags)
{
	if (likely(interner->told == NULL))
		return writer_add_stack(interner->writer, parent, frame, flags);
	*MEM_ADD(interner->told, interner->told_count, interner->told_capacity) = 0;
	return (stack_id)(interner->told_count - 1);
}

// The key is parent and frame together, so that equal keys are equal stacks; the hash only says
// where to look.
stack_id interner_search(struct interner *interner, stack_id parent,
			 const struct interner_push *push, uint8_t flags)
{
	uint64_t key = interner_key(parent, push->frame, flags);
	struct interner_bucket *bucket = interner_bucket(interner, push->hash);
	stack_id id;

	for (size_t at = 0; bucket->ids[at] != 0;) {
		if (bucket->keys[at] == key)
			return bucket->ids[at];
		if (++at == INTERNER_SLOTS) {
			bucket = next_of(interner, bucket);
			at = 0;
		}
	}
	id = next_id(interner, parent, push->frame, flags);
	put(interner, &(struct homeless){ key, push->hash, id });
	if (unlikely(interner->keys != NULL))
		keep_key(interner, id, key);
	if (++interner->count > interner->buckets_count * INTERNER_SLOTS / 8 * 5)
		grow(interner);
	return id;
}

// Without any frame it is of one that is not known.
//
// The same frames with another root: each node of a sampled stack is another stack.
stack_id interner_sampled(struct interner *interner, stack_id id, uint32_t turn)
{
	struct interner_row row = { 0 };
	stack_id stack = 0;
	uint64_t hash;
	size_t count = 0;

	ASSERT(turn > 0 && turn <= UINT8_MAX >> TRACE_STACK_SAMPLE_SHIFT);
	do {
		if (id != 0)
			row = interner_get(interner, id);
		*MEM_ADD(interner->walked, count, interner->walked_capacity) = row.frame;
		id = row.parent;
	} while (id != 0);
	row.flags |= (uint8_t)(turn << TRACE_STACK_SAMPLE_SHIFT);
	hash = interner_root(row.flags);
	while (count > 0) {
		struct interner_push push = { .frame = interner->walked[--count] };

		hash = interner_hash(hash, push.frame);
		push.hash = (uint32_t)(hash >> 32);
		stack = interner_add(interner, stack, &push, row.flags);
	}
	return stack;
}
