// Looking up, putting, growing. live_table.h says why it is so.
//
// A table of 4 buckets has 16 slots and is full with 12 keys: the 13th would be more than four
// fifths. It grows to 8 buckets. From 65,536 buckets on (262,144 slots of 16 bytes, 4 MiB) it grows
// by an eighth: it is full with 209,715 keys, and after growing to 73,728 buckets they are 71 % of
// the slots. A table that doubled would be 40 % full then, and these are gigabytes for programs
// that keep a hundred million blocks.
//
// Growing by so little needs no second table. Both homes of a key rise with some of its hash's
// bits, as hash * buckets / 2^32 does, so keys that are in order of their homes before are so
// after. All is moved to the end of the larger area, and put from there to where it belongs, from
// beginning to end: key of bucket 6 of 8 goes to 6 or 7 of 9, which is never past the place that is
// read.
#include "engine/index/live_table.h"

#include <string.h>

_Static_assert(sizeof(struct live_table_slot) * LIVE_TABLE_BUCKET == 64,
	       "a bucket is a cache line");
_Static_assert(LIVE_TABLE_PARTS == 1 << 6, "a part is named by the six highest bits of a hash");

enum {
	BUCKETS_MIN = 4,
	LARGE = 1 << 16, // buckets; a smaller table grows to twice its size
	BUCKET_BYTES = LIVE_TABLE_BUCKET * sizeof(struct live_table_slot),
	MOVES_MAX = 256, // of keys, to make room for one
};

void live_table_fini(struct live_table *alive)
{
	mem_area_fini(&alive->area);
	mem_free(alive->rest);
	*alive = (struct live_table){ 0 };
}

// A bit for each slot of a bucket that has this key. No branches: which slot cannot be predicted.
static inline unsigned slots_with(const struct live_table_slot *bucket, uint64_t key)
{
	return (unsigned)(bucket[0].key == key) | (unsigned)(bucket[1].key == key) << 1 |
	       (unsigned)(bucket[2].key == key) << 2 | (unsigned)(bucket[3].key == key) << 3;
}

static inline struct live_table_slot *bucket_at(const struct live_table *alive, size_t bucket)
{
	return &alive->slots[bucket * LIVE_TABLE_BUCKET];
}

static inline struct live_table_slot *home(const struct live_table *alive, uint64_t hash)
{
	return bucket_at(alive, live_table_home(hash, alive->buckets));
}

static inline struct live_table_slot *other_home(const struct live_table *alive, uint64_t hash)
{
	return bucket_at(alive, live_table_other(hash, alive->buckets));
}

// One by one: only keys that were made to be so are here.
static struct live_table_slot *find_rest(const struct live_table *alive, uint64_t key)
{
	for (size_t i = 0; i < alive->rest_count; i++)
		if (alive->rest[i].key == key)
			return &alive->rest[i];
	return NULL;
}

// Of a key whose buckets are these.
static inline struct live_table_slot *find_in(const struct live_table *alive, uint64_t key,
					      struct live_table_slot *first,
					      struct live_table_slot *second)
{
	unsigned found = slots_with(first, key), also = slots_with(second, key);

	if (found | also)
		return found ? first + __builtin_ctz(found) : second + __builtin_ctz(also);
	return alive->rest_count ? find_rest(alive, key) : NULL;
}

struct live_table_slot *live_table_find(const struct live_table *alive, uint64_t key)
{
	uint64_t hash = live_table_hash(key);

	ASSERT(key != 0);
	if (alive->count == 0)
		return NULL;
	return find_in(alive, key, home(alive, hash), other_home(alive, hash));
}

bool live_table_is_full(const struct live_table *alive)
{
	return (alive->count + 1) * 5 > alive->buckets * LIVE_TABLE_BUCKET * 4;
}

static size_t next_buckets(const struct live_table *alive)
{
	if (alive->buckets == 0)
		return BUCKETS_MIN;
	return alive->buckets + (alive->buckets < LARGE ? alive->buckets : alive->buckets / 8);
}

uint64_t live_table_next_bytes(const struct live_table *alive)
{
	return next_buckets(alive) * (uint64_t)BUCKET_BYTES;
}

// The other bucket that a key may be in.
static struct live_table_slot *elsewhere(const struct live_table *alive,
					 const struct live_table_slot *bucket, uint64_t key)
{
	uint64_t hash = live_table_hash(key);
	struct live_table_slot *first = home(alive, hash);

	return first != bucket ? first : other_home(alive, hash);
}

// A slot of a full bucket whose key could move to its other bucket, and did. NULL: none can.
static struct live_table_slot *make_gap(struct live_table *alive, struct live_table_slot *bucket)
{
	for (unsigned i = 0; i < LIVE_TABLE_BUCKET; i++) {
		struct live_table_slot *other = elsewhere(alive, bucket, bucket[i].key);
		unsigned gaps = slots_with(other, 0);

		if (gaps) {
			other[__builtin_ctz(gaps)] = bucket[i];
			alive->moves++;
			return &bucket[i];
		}
	}
	return NULL;
}

static void add_rest(struct live_table *alive, struct live_table_slot slot)
{
	*MEM_ADD(alive->rest, alive->rest_count, alive->rest_capacity) = slot;
}

// A place for a key where both of its buckets are full: it takes that of another, which takes that
// of another.
static struct live_table_slot *push(struct live_table *alive, struct live_table_slot slot)
{
	struct live_table_slot *bucket = home(alive, live_table_hash(slot.key));
	uint64_t key = slot.key;

	for (unsigned i = 0; i < MOVES_MAX; i++) {
		struct live_table_slot *gap = make_gap(alive, bucket), moved;

		if (gap) {
			*gap = slot;
			return live_table_find(alive, key);
		}
		moved = bucket[i % LIVE_TABLE_BUCKET];
		bucket[i % LIVE_TABLE_BUCKET] = slot;
		alive->moves++;
		slot = moved;
		bucket = elsewhere(alive, bucket, slot.key);
	}
	add_rest(alive, slot);
	return live_table_find(alive, key);
}

// How many bits a number below 16 has.
static inline unsigned bits_of(unsigned gaps)
{
	return UINT64_C(0x4332322132212110) >> 4 * gaps & 7;
}

// Into one of two buckets, or another's place.
static inline struct live_table_slot *place_in(struct live_table *alive,
					       struct live_table_slot slot,
					       struct live_table_slot *bucket,
					       struct live_table_slot *second)
{
	unsigned gaps = slots_with(bucket, 0), second_gaps = slots_with(second, 0);

	if (bits_of(second_gaps) > bits_of(gaps)) {
		bucket = second;
		gaps = second_gaps;
	}
	if (!gaps)
		return push(alive, slot);
	bucket += __builtin_ctz(gaps);
	*bucket = slot;
	return bucket;
}

// Put what is not there; there is room.
static struct live_table_slot *place(struct live_table *alive, struct live_table_slot slot)
{
	uint64_t hash = live_table_hash(slot.key);

	return place_in(alive, slot, home(alive, hash), other_home(alive, hash));
}

// Put what was in bucket `from` of `before` where it belongs now, if that is in [0, end).
static bool put_again(struct live_table *alive, struct live_table_slot slot, size_t from,
		      size_t before, size_t end)
{
	uint64_t hash = live_table_hash(slot.key);
	size_t to[2] = { live_table_home(hash, alive->buckets),
			 live_table_other(hash, alive->buckets) };
	unsigned first = live_table_home(hash, before) != from;

	for (unsigned i = 0; i < 2; i++) {
		size_t bucket = to[first ^ i];
		unsigned gaps = bucket < end ? slots_with(bucket_at(alive, bucket), 0) : 0;

		if (gaps) {
			bucket_at(alive, bucket)[__builtin_ctz(gaps)] = slot;
			return true;
		}
	}
	return false;
}

// All is moved to the end of the larger table, and from there, from beginning to end, to where it
// belongs: to that of its two buckets that it was in. That is never behind where it is read: the
// new bucket is at most as many further than the old one as there are new buckets.
static void grow(struct live_table *alive)
{
	size_t before = alive->buckets, buckets = next_buckets(alive), added = buckets - before;
	size_t stale = before < added ? before : added, left_count;
	struct live_table_slot *left;

	mem_area_grow(&alive->area, buckets * BUCKET_BYTES);
	alive->slots = alive->area.at;
	alive->buckets = buckets;
	memmove(alive->slots + added * LIVE_TABLE_BUCKET, alive->slots, before * BUCKET_BYTES);
	memset(alive->slots, 0, stale * BUCKET_BYTES);
	for (size_t i = 0; i < before; i++) {
		struct live_table_slot bucket[LIVE_TABLE_BUCKET];

		memcpy(bucket, bucket_at(alive, added + i), sizeof bucket);
		memset(bucket_at(alive, added + i), 0, sizeof bucket);
		for (unsigned k = 0; k < LIVE_TABLE_BUCKET; k++)
			if (bucket[k].key && !put_again(alive, bucket[k], i, before, added + i + 1))
				add_rest(alive, bucket[k]);
	}
	// What found no place on the way finds one now, as what found none before may.
	left = alive->rest;
	left_count = alive->rest_count;
	alive->rest = NULL;
	alive->rest_count = alive->rest_capacity = 0;
	for (size_t i = 0; i < left_count; i++)
		place(alive, left[i]);
	mem_free(left);
}

void live_table_reserve(struct live_table *alive, size_t count)
{
	live_table_fini(alive);
	alive->buckets = count * 3 / 2 / LIVE_TABLE_BUCKET + BUCKETS_MIN;
	mem_area_grow(&alive->area, alive->buckets * BUCKET_BYTES);
	alive->slots = alive->area.at;
}

struct live_table_slot *live_table_put(struct live_table *alive, uint64_t key, bool *added)
{
	uint64_t hash = live_table_hash(key);
	struct live_table_slot slot = { .key = key }, *first, *second, *found = NULL;

	ASSERT(key != 0);
	if (alive->buckets == 0)
		grow(alive);
	first = home(alive, hash);
	second = other_home(alive, hash);
	if (alive->count > 0)
		found = find_in(alive, key, first, second);
	*added = !found;
	if (found)
		return found;
	if (!live_table_is_full(alive)) {
		alive->count++;
		return place_in(alive, slot, first, second);
	}
	grow(alive);
	alive->count++;
	return place(alive, slot);
}

// The last one of `rest` to a place there. Returns where it was.
static struct live_table_slot *move_last(struct live_table *alive, struct live_table_slot *slot)
{
	struct live_table_slot *last = &alive->rest[--alive->rest_count];

	*slot = *last;
	return last;
}

void live_table_remove(struct live_table *alive, struct live_table_slot *slot)
{
	ASSERT(slot->key != 0 && alive->count > 0);
	alive->count--;
	if (alive->rest_count > 0 && slot >= alive->rest && slot < alive->rest + alive->rest_count)
		slot = move_last(alive, slot);
	slot->key = 0;
}

void live_table_expect(const struct live_table *alive, uint64_t key)
{
	uint64_t hash = live_table_hash(key);

	if (alive->buckets == 0)
		return;
	mem_expect(home(alive, hash));
	mem_expect(other_home(alive, hash));
}

struct live_table_slot *live_table_next(const struct live_table *alive, size_t *at)
{
	size_t slots = alive->buckets * LIVE_TABLE_BUCKET;

	while (*at < slots) {
		struct live_table_slot *slot = &alive->slots[(*at)++];

		if (slot->key)
			return slot;
	}
	return *at - slots < alive->rest_count ? &alive->rest[(*at)++ - slots] : NULL;
}
