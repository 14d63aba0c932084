// base/map.h: a map agrees with a plain list of pairs, whatever is done to it.
#include "base/map.h"
#include "test/test.h"

#include <string.h>

TEST(map_of_nothing_finds_nothing)
{
	struct map map = { 0 };
	size_t at = 0;
	uint64_t key, value;

	CHECK(!map_find(&map, 0));
	CHECK(!map_find(&map, 1));
	CHECK(!map_remove(&map, 0));
	CHECK(!map_remove(&map, 1));
	CHECK(!map_next(&map, &at, &key, &value));
	map_clear(&map);
	map_fini(&map);
}

TEST(map_takes_zero_as_a_key_like_any_other)
{
	struct map map = { 0 };
	bool added = false;

	*map_put(&map, 0, &added) = 5;
	CHECK(added);
	CHECK_EQ(1, map.count);
	CHECK_EQ(5, *map_find(&map, 0));
	CHECK_EQ(5, *map_put(&map, 0, &added));
	CHECK(!added);
	CHECK(map_remove(&map, 0));
	CHECK(!map_find(&map, 0));
	CHECK_EQ(0, *map_put(&map, 0, NULL));
	map_fini(&map);
}

TEST(map_clear_forgets_everything)
{
	struct map map = { 0 };

	for (uint64_t key = 0; key < 100; key++)
		*map_put(&map, key, NULL) = key;
	map_clear(&map);
	CHECK_EQ(0, map.count);
	for (uint64_t key = 0; key < 100; key++)
		CHECK(!map_find(&map, key));
	map_fini(&map);
}

enum { KEYS = 512 };

// What the map must say: for each key whether it is there, and its value.
struct model {
	bool present[KEYS];
	uint64_t values[KEYS];
	size_t count;
};

static void check_agrees(const struct map *map, const struct model *model, uint64_t step)
{
	bool seen[KEYS] = { 0 };
	size_t count = 0;
	size_t at = 0;
	uint64_t key, value;

	while (map_next(map, &at, &key, &value)) {
		CHECK(key % step == 0 && key / step < KEYS);
		CHECK(!seen[key / step]);
		seen[key / step] = true;
		CHECK_EQ(model->values[key / step], value);
		count++;
	}
	CHECK_EQ(model->count, count);
	CHECK_EQ(model->count, map->count);
	for (uint64_t i = 0; i < KEYS; i++) {
		CHECK_EQ(model->present[i], seen[i]);
		CHECK_EQ(model->present[i], map_find(map, i * step) != NULL);
	}
}

// Random additions and removals; keys are multiples of `step`, as addresses are.
static void run_against_model(uint64_t step)
{
	struct map map = { 0 };
	struct model model = { 0 };
	uint64_t state = step;

	for (uint64_t round = 0; round < 20000; round++) {
		uint64_t i;
		bool added;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		i = state >> 33 & (KEYS - 1);
		if (state >> 62) {
			*map_put(&map, i * step, &added) = round;
			CHECK_EQ(!model.present[i], added);
			model.count += added;
			model.present[i] = true;
			model.values[i] = round;
		} else {
			CHECK_EQ(model.present[i], map_remove(&map, i * step));
			model.count -= model.present[i];
			model.present[i] = false;
		}
		if (round % 1000 == 0)
			check_agrees(&map, &model, step);
	}
	check_agrees(&map, &model, step);
	map_fini(&map);
}

TEST(map_agrees_with_a_list_under_random_changes)
{
	run_against_model(1);
	run_against_model(16);
	run_against_model(4096);
	run_against_model(UINT64_C(1) << 32);
	run_against_model(UINT64_C(1) << 48);
}

TEST(map_holds_a_million_addresses)
{
	struct map map = { 0 };
	const uint64_t base = UINT64_C(0x7f0000001000);

	for (uint64_t i = 0; i < 1000000; i++)
		*map_put(&map, base + i * 48, NULL) = i;
	CHECK_EQ(1000000, map.count);
	for (uint64_t i = 0; i < 1000000; i += 2)
		CHECK(map_remove(&map, base + i * 48));
	for (uint64_t i = 0; i < 1000000; i++) {
		uint64_t *value = map_find(&map, base + i * 48);

		CHECK_EQ(i % 2, value != NULL);
		if (value)
			CHECK_EQ(i, *value);
	}
	map_fini(&map);
}
