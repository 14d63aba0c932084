// base/index_set.h: positions are found by what stands there, and by nothing else.
#include "base/index_set.h"
#include "test/test.h"

enum { ITEMS = 5000 };

static bool is_item(const void *context, uint32_t position, const void *key)
{
	const uint64_t *items = context;

	return items[position] == *(const uint64_t *)key;
}

// Each item is put twice; `spread` different hashes.
static void check_with(uint64_t spread)
{
	static uint64_t items[ITEMS];
	struct index_set set = { 0 };
	uint64_t absent = 1;

	for (uint32_t i = 0; i < ITEMS; i++) {
		items[i] = (uint64_t)i * 4 + 2;
		CHECK_EQ(INDEX_SET_NONE,
			 index_set_find(&set, items[i] % spread, is_item, items, &items[i]));
		CHECK_EQ(i, index_set_put(&set, items[i] % spread, is_item, items, &items[i], i));
		CHECK_EQ(i,
			 index_set_put(&set, items[i] % spread, is_item, items, &items[i], i + 1));
		CHECK_EQ(i + 1, set.count);
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		CHECK_EQ(i, index_set_find(&set, items[i] % spread, is_item, items, &items[i]));
	CHECK_EQ(INDEX_SET_NONE, index_set_find(&set, 1 % spread, is_item, items, &absent));
	index_set_fini(&set);
	CHECK_EQ(INDEX_SET_NONE, index_set_find(&set, 2, is_item, items, &items[0]));
}

TEST(index_set_finds_what_was_put)
{
	check_with(UINT64_MAX);
}

TEST(index_set_tells_apart_what_has_one_hash)
{
	check_with(7);
}

// Items of `each` to a number, put in turn and found again, as above.
static void check_by(uint32_t each)
{
	static uint64_t items[ITEMS];
	struct index_set set = { 0 };
	uint64_t absent = 1;

	for (uint32_t i = 0; i < ITEMS; i++) {
		uint32_t number = i % (ITEMS / each);

		items[i] = (uint64_t)i * 4 + 2;
		CHECK_EQ(INDEX_SET_NONE,
			 index_set_find_by(&set, number, items[i], is_item, items, &items[i]));
		CHECK_EQ(i, index_set_put_by(&set, number, items[i], is_item, items, &items[i], i));
		CHECK_EQ(i, index_set_put_by(&set, number, items[i], is_item, items, &items[i],
					     i + 1));
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		CHECK_EQ(i, index_set_find_by(&set, i % (ITEMS / each), items[i], is_item, items,
					      &items[i]));
	CHECK_EQ(INDEX_SET_NONE, index_set_find_by(&set, 0, 1, is_item, items, &absent));
	CHECK_EQ(INDEX_SET_NONE, index_set_find_by(&set, ITEMS, 1, is_item, items, &absent));
	index_set_fini(&set);
	CHECK_EQ(INDEX_SET_NONE, index_set_find_by(&set, 0, 2, is_item, items, &items[0]));
}

TEST(index_set_finds_what_was_put_by_a_number_of_it)
{
	check_by(1);
	check_by(2);
	check_by(500);
}

TEST(index_set_hash_tells_orders_apart)
{
	const uint64_t one[] = { 1, 2 }, other[] = { 2, 1 };

	CHECK(index_set_hash(one, 2) != index_set_hash(other, 2));
	CHECK_EQ(index_set_hash(one, 2), index_set_hash(one, 2));
}
