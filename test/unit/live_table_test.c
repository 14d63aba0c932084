// live_table.h: the table of living blocks agrees with a map, whatever is done to it: while
// it grows where it is, and where many want one place; and what that costs is in proportion.
#include "base/map.h"
#include "engine/index/live_table.h"
#include "test/test.h"

static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

// The key whose hash is this one: live_table_hash backwards.
static uint64_t key_of(uint64_t hash)
{
	uint64_t inverse = 1, mixed;

	// Each round doubles the bits that are right.
	for (int i = 0; i < 6; i++)
		inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
	mixed = (hash ^ hash >> 32) * inverse;
	return mixed << 4 | mixed >> 60;
}

static void check_all(const struct live_table *alive, struct map *map)
{
	const struct live_table_slot *slot;
	size_t at = 0, count = 0;
	uint64_t key, value;

	CHECK_EQ(map->count, alive->count);
	while ((slot = live_table_next(alive, &at)) != NULL) {
		CHECK(map_find(map, slot->key));
		count++;
	}
	CHECK_EQ(map->count, count);
	for (at = 0; map_next(map, &at, &key, &value);) {
		const struct live_table_slot *found = live_table_find(alive, key);

		CHECK(found);
		CHECK_EQ(value, found->value);
	}
}

// Put and remove at random, keys whose home is in [from, from + width) of 2^32.
static void play(struct live_table *alive, struct map *map, uint64_t from, uint64_t width,
		 unsigned calls, unsigned keys)
{
	for (unsigned i = 0; i < calls; i++) {
		uint64_t low = (from + width / keys * (next_random() % keys)) & UINT32_MAX;
		uint64_t key = key_of(UINT64_C(77) << 32 | low);
		struct live_table_slot *slot = live_table_find(alive, key);
		bool known = map_find(map, key) != NULL, added;

		CHECK_EQ(known, slot != NULL);
		if (key == 0)
			continue;
		if (slot && next_random() % 3 == 0) {
			live_table_remove(alive, slot);
			map_remove(map, key);
			continue;
		}
		slot = live_table_put(alive, key, &added);
		CHECK_EQ(!known, added);
		CHECK_EQ(known ? *map_find(map, key) : 0, slot->value);
		slot->value = next_random();
		*map_put(map, key, NULL) = slot->value;
	}
}

TEST(alive_hash_can_be_undone_by_the_test)
{
	state = 7;
	for (int i = 0; i < 1000; i++) {
		uint64_t hash = next_random();

		CHECK_EQ(hash, live_table_hash(key_of(hash)));
	}
}

TEST(alive_of_nothing_finds_nothing)
{
	struct live_table alive = { 0 };
	size_t at = 0;

	live_table_expect(&alive, 5);
	CHECK(!live_table_find(&alive, 5));
	CHECK(!live_table_next(&alive, &at));
	CHECK(live_table_is_full(&alive));
	live_table_fini(&alive);
}

TEST(alive_agrees_with_a_map_where_keys_are_spread)
{
	struct live_table alive = { 0 };
	struct map map = { 0 };

	state = 1234567;
	for (int round = 0; round < 20; round++) {
		play(&alive, &map, 0, UINT64_C(1) << 32, 2000, 4000);
		check_all(&alive, &map);
	}
	live_table_fini(&alive);
	map_fini(&map);
}

TEST(alive_agrees_with_a_map_where_keys_want_one_place)
{
	static const struct {
		uint64_t from, width;
		unsigned keys;
	} places[] = {
		{ UINT64_C(0xffffff00), 256, 256 }, // the last bucket's
		{ 0, 300, 300 },                    // the first one's
		{ UINT64_C(0xf0000000), UINT64_C(0x20000000), 500 },
		{ UINT64_C(0x7ffffff0), 1 << 20, 90 },
		{ UINT64_C(0xfffffff8), 8, 8 },
	};

	bool apart = false;

	state = 99;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct live_table alive = { 0 };
		struct map map = { 0 };

		for (int round = 0; round < 30; round++) {
			play(&alive, &map, places[i].from, places[i].width, 100, places[i].keys);
			check_all(&alive, &map);
			apart |= alive.rest_count > 0;
			if (round == 15)
				play(&alive, &map, 0, UINT64_C(1) << 32, 3000, 6000);
		}
		live_table_fini(&alive);
		map_fini(&map);
	}
	CHECK(apart);
}

TEST(alive_grows_past_small_pages_and_loses_nothing)
{
	enum { KEYS = 1 << 19 }; // past the size from which it grows by an eighth
	struct live_table alive = { 0 };
	bool added;

	for (uint64_t i = 1; i <= KEYS; i++)
		live_table_put(&alive, live_table_key(3, i * 16), &added)->value = i;
	CHECK_EQ(KEYS, alive.count);
	CHECK(alive.buckets * LIVE_TABLE_BUCKET * 4 >= alive.count * 5);
	CHECK(alive.buckets * LIVE_TABLE_BUCKET * 7 <= alive.count * 10);
	for (uint64_t i = 1; i <= KEYS; i++) {
		struct live_table_slot *slot = live_table_find(&alive, live_table_key(3, i * 16));

		CHECK(slot && slot->value == i);
		if (i % 2)
			live_table_remove(&alive, slot);
	}
	for (uint64_t i = 1; i <= KEYS; i++)
		CHECK_EQ(i % 2 == 0, live_table_find(&alive, live_table_key(3, i * 16)) != NULL);
	live_table_fini(&alive);
}

TEST(alive_reserve_makes_room_so_that_nothing_grows)
{
	struct live_table alive = { 0 };
	size_t buckets;
	bool added;

	live_table_reserve(&alive, 10000);
	buckets = alive.buckets;
	for (uint64_t i = 1; i <= 10000; i++)
		live_table_put(&alive, live_table_key(1, i * 32), &added);
	CHECK_EQ(buckets, alive.buckets);
	live_table_fini(&alive);
}

TEST(what_is_kept_apart_can_all_be_taken_out_while_going_through_it)
{
	enum { KEYS = 50 }; // of one place
	struct live_table alive = { 0 };
	struct live_table_slot *slot;
	size_t at = 0, count = 0;
	bool added;

	for (uint64_t i = 0; i < KEYS; i++)
		live_table_put(&alive, key_of(UINT64_C(5) << 32 | i), &added);
	CHECK(alive.rest_count > 0);
	while ((slot = live_table_next(&alive, &at)) != NULL) {
		while (slot->key) {
			live_table_remove(&alive, slot);
			count++;
		}
	}
	CHECK_EQ(KEYS, count);
	CHECK_EQ(0, alive.count);
	CHECK_EQ(0, alive.rest_count);
	live_table_fini(&alive);
}

// A part is loaded with the keys of a table in the order of its slots, which is that of their
// hashes. Where each key is looked for in two buckets, keys that move are all that it costs.
TEST(loading_a_part_takes_moves_in_proportion_to_its_keys)
{
	enum { KEYS = 1 << 18 };
	struct live_table all = { 0 };
	bool added;

	for (uint64_t i = 1; i <= KEYS; i++)
		live_table_put(&all, live_table_key(2, i * 48), &added);
	CHECK(all.moves < KEYS);
	for (unsigned reserve = 0; reserve < 2; reserve++) {
		for (unsigned part = 0; part < LIVE_TABLE_PARTS; part += 9) {
			struct live_table alive = { 0 };
			const struct live_table_slot *slot;
			size_t at = 0;

			if (reserve)
				live_table_reserve(&alive, KEYS / LIVE_TABLE_PARTS);
			while ((slot = live_table_next(&all, &at)) != NULL)
				if (live_table_part(live_table_hash(slot->key)) == part)
					live_table_put(&alive, slot->key, &added);
			CHECK(alive.count > KEYS / LIVE_TABLE_PARTS / 2);
			CHECK(alive.moves < alive.count * (reserve ? 1 : 8));
			CHECK_EQ(0, alive.rest_count);
			live_table_fini(&alive);
		}
	}
	live_table_fini(&all);
}
