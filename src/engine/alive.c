#include "engine/alive.h"

#include <string.h>

enum {
	BUCKETS_MIN = 4,
	LARGE = 1 << 16, // buckets; a smaller table grows to twice its size
	BUCKET_BYTES = ALIVE_BUCKET * sizeof(struct alive_slot),
};

void alive_fini(struct alive *alive)
{
	mem_area_fini(&alive->area);
	*alive = (struct alive){ 0 };
}

static size_t home(const struct alive *alive, uint64_t key)
{
	return alive_home(alive_hash(key), alive->buckets);
}

static size_t behind(const struct alive *alive, size_t bucket)
{
	return bucket + 1 == alive->buckets ? 0 : bucket + 1;
}

// Buckets from one to another, going up and around.
static size_t distance(const struct alive *alive, size_t from, size_t to)
{
	return to >= from ? to - from : to + alive->buckets - from;
}

// A bit for each slot of a bucket that has this key. No branches: nobody foretells which slot.
static inline unsigned slots_with(const struct alive_slot *bucket, uint64_t key)
{
	return (unsigned)(bucket[0].key == key) | (unsigned)(bucket[1].key == key) << 1 |
	       (unsigned)(bucket[2].key == key) << 2 | (unsigned)(bucket[3].key == key) << 3;
}

static bool bucket_full(const struct alive_slot *bucket)
{
	return slots_with(bucket, 0) == 0;
}

// Where the key is, or would be put. There is a free slot.
static inline struct alive_slot *probe(const struct alive *alive, uint64_t key)
{
	for (size_t i = home(alive, key);; i = behind(alive, i)) {
		struct alive_slot *bucket = &alive->slots[i * ALIVE_BUCKET];
		unsigned found = slots_with(bucket, key), gaps = slots_with(bucket, 0);

		if (found)
			return &bucket[__builtin_ctz(found)];
		if (gaps)
			return &bucket[__builtin_ctz(gaps)];
	}
}

struct alive_slot *alive_find(const struct alive *alive, uint64_t key)
{
	struct alive_slot *slot;

	if (alive->count == 0)
		return NULL;
	slot = probe(alive, key);
	return slot->key == key ? slot : NULL;
}

bool alive_is_full(const struct alive *alive)
{
	return (alive->count + 1) * 5 > alive->buckets * ALIVE_BUCKET * 4;
}

// What is free in a large table is memory that others want.
static size_t next_buckets(const struct alive *alive)
{
	if (alive->buckets == 0)
		return BUCKETS_MIN;
	return alive->buckets + (alive->buckets < LARGE ? alive->buckets : alive->buckets / 8);
}

uint64_t alive_next_bytes(const struct alive *alive)
{
	return next_buckets(alive) * (uint64_t)BUCKET_BYTES;
}

// Take out the keys that belong to the last buckets and went around to the first. Returns them and
// how many they are.
static struct alive_slot *unwrap(struct alive *alive, size_t *count)
{
	struct alive_slot *list = NULL;
	size_t capacity = 0;
	bool full = true;

	*count = 0;
	for (size_t i = 0; i < alive->buckets && full; i++) {
		struct alive_slot *bucket = &alive->slots[i * ALIVE_BUCKET];

		full = bucket_full(bucket);
		for (unsigned k = 0; k < ALIVE_BUCKET; k++) {
			if (!bucket[k].key || home(alive, bucket[k].key) <= i)
				continue;
			list = mem_grow(list, &capacity, *count + 1, sizeof *list);
			list[(*count)++] = bucket[k];
			bucket[k].key = 0;
		}
	}
	return list;
}

// All is moved to the end of the larger table, and from there, from beginning to end, to where it
// belongs. That is never behind where it is read: a key's new bucket is at most as many further
// than its old one as there are new buckets.
static void grow(struct alive *alive)
{
	size_t before = alive->buckets, buckets = next_buckets(alive), added = buckets - before;
	size_t around, stale = before < added ? before : added;
	struct alive_slot *list = unwrap(alive, &around);

	mem_area_grow(&alive->area, buckets * BUCKET_BYTES);
	alive->slots = alive->area.at;
	alive->buckets = buckets;
	memmove(alive->slots + added * ALIVE_BUCKET, alive->slots, before * BUCKET_BYTES);
	memset(alive->slots, 0, stale * BUCKET_BYTES);
	for (size_t i = added; i < buckets; i++) {
		struct alive_slot bucket[ALIVE_BUCKET];

		memcpy(bucket, alive->slots + i * ALIVE_BUCKET, sizeof bucket);
		memset(alive->slots + i * ALIVE_BUCKET, 0, sizeof bucket);
		for (unsigned k = 0; k < ALIVE_BUCKET; k++)
			if (bucket[k].key)
				*probe(alive, bucket[k].key) = bucket[k];
	}
	for (size_t i = 0; i < around; i++)
		*probe(alive, list[i].key) = list[i];
	mem_free(list);
}

void alive_reserve(struct alive *alive, size_t count)
{
	alive_fini(alive);
	alive->buckets = count * 3 / 2 / ALIVE_BUCKET + BUCKETS_MIN;
	mem_area_grow(&alive->area, alive->buckets * BUCKET_BYTES);
	alive->slots = alive->area.at;
}

struct alive_slot *alive_put(struct alive *alive, uint64_t key, bool *added)
{
	struct alive_slot *slot = alive->buckets ? probe(alive, key) : NULL;

	*added = !slot || slot->key == 0;
	if (!*added)
		return slot;
	if (alive_is_full(alive)) {
		grow(alive);
		slot = probe(alive, key);
	}
	*slot = (struct alive_slot){ .key = key };
	alive->count++;
	return slot;
}

// A key of a bucket that belongs to an earlier one, or is as far behind its own: it may move there.
static struct alive_slot *find_earlier(const struct alive *alive, size_t bucket, size_t earlier)
{
	struct alive_slot *slots = &alive->slots[bucket * ALIVE_BUCKET];

	for (unsigned k = 0; k < ALIVE_BUCKET; k++)
		if (slots[k].key && distance(alive, home(alive, slots[k].key), bucket) >=
					    distance(alive, earlier, bucket))
			return &slots[k];
	return NULL;
}

void alive_remove(struct alive *alive, struct alive_slot *slot)
{
	size_t hole = (size_t)(slot - alive->slots) / ALIVE_BUCKET;
	bool full = bucket_full(&alive->slots[hole * ALIVE_BUCKET]);

	slot->key = 0;
	alive->count--;
	// Move up what would not be found any more behind a bucket that is no longer full.
	for (size_t i = behind(alive, hole); full; i = behind(alive, i)) {
		struct alive_slot *moves = find_earlier(alive, i, hole);

		full = bucket_full(&alive->slots[i * ALIVE_BUCKET]);
		if (!moves)
			continue;
		*slot = *moves;
		moves->key = 0;
		slot = moves;
		hole = i;
	}
}

void alive_expect(const struct alive *alive, uint64_t key)
{
	const struct alive_slot *bucket = &alive->slots[home(alive, key) * ALIVE_BUCKET];

	// A third of the keys are, or will be, behind a bucket that is full.
	mem_expect(bucket);
	mem_expect(bucket + ALIVE_BUCKET);
}

struct alive_slot *alive_next(const struct alive *alive, size_t *at)
{
	while (*at < alive->buckets * ALIVE_BUCKET) {
		struct alive_slot *slot = &alive->slots[(*at)++];

		if (slot->key)
			return slot;
	}
	return NULL;
}
