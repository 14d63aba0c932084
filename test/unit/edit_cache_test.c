// A line of the cache is found by all that it was made of, and by nothing else.
#include "collect/edit_cache.h"
#include "test/test.h"

enum { TAG = 3 * EDIT_CACHE_TAG, PARENT = 55 };

// An edit's frames as they lie in a lane behind something else, with their callers before them.
struct edit {
	uint32_t callers[EDIT_CACHE_CALLERS];
	uint32_t head;
	uint32_t frames[EDIT_CACHE_PUSHES];
	uint32_t push;
};

static const struct edit sample = {
	.callers = { 91, 92, 93, 94 },
	.head = 0x12345678,
	.frames = { 1, 2, 3, 4, 5, 6, 7 },
};

static const stack_id ids[EDIT_CACHE_PUSHES] = { 11, 12, 13, 14, 15, 16, 17 };

static struct edit_cache_key key_of(const struct edit *edit, uint32_t tag, uint32_t flags)
{
	return edit_cache_key((const uint8_t *)&edit->head, tag | flags | edit->push, edit->push);
}

static const struct edit_cache_line *find(const struct edit_cache *cache, const struct edit *edit,
					  stack_id parent)
{
	struct edit_cache_key key = key_of(edit, TAG, 0);

	return edit_cache_find(edit_cache_lines(cache, &key, &edit->head), &key, parent);
}

static void put(struct edit_cache *cache, const struct edit *edit, stack_id parent)
{
	struct edit_cache_key key = key_of(edit, TAG, 0);

	edit_cache_put(cache, edit_cache_lines(cache, &key, &edit->head), &key, parent, ids,
		       edit->push);
}

TEST(an_edit_is_known_by_its_image_its_callers_its_flags_and_each_of_its_frames)
{
	struct edit_cache cache;

	edit_cache_init(&cache);
	for (uint32_t push = 1; push <= EDIT_CACHE_PUSHES; push++) {
		struct edit edit = sample;
		const struct edit_cache_line *line;
		struct edit_cache_key key;

		edit.push = push;
		CHECK(find(&cache, &edit, PARENT) == NULL);
		put(&cache, &edit, PARENT);
		line = find(&cache, &edit, PARENT);
		CHECK(line != NULL);
		CHECK_EQ(10 + push, line->ids[push - 1]);
		CHECK_EQ(push, line->frames[push - 1]);
		edit.head = 0; // not a part of it
		CHECK(find(&cache, &edit, PARENT) == line);
		CHECK(find(&cache, &edit, PARENT + 1) == NULL);
		key = key_of(&edit, 2 * TAG, 0);
		CHECK(!edit_cache_is(line, &key, PARENT));
		key = key_of(&edit, TAG, EDIT_CACHE_CUT);
		CHECK(!edit_cache_is(line, &key, PARENT));
		for (uint32_t i = 0; i < EDIT_CACHE_PUSHES; i++) {
			edit.frames[i] ^= 0x80000000;
			key = key_of(&edit, TAG, 0);
			CHECK_EQ(i >= push, edit_cache_is(line, &key, PARENT));
			edit.frames[i] ^= 0x80000000;
		}
		edit.push = push % EDIT_CACHE_PUSHES + 1;
		key = key_of(&edit, TAG, 0);
		CHECK(!edit_cache_is(line, &key, PARENT));
	}
	edit_cache_fini(&cache);
}

TEST(two_edits_with_one_hash_are_both_known)
{
	struct edit edit = sample;
	struct edit_cache cache;

	edit_cache_init(&cache);
	edit.push = 2;
	put(&cache, &edit, 1);
	put(&cache, &edit, 2);
	CHECK(find(&cache, &edit, 1) != NULL);
	CHECK(find(&cache, &edit, 2) != NULL);
	put(&cache, &edit, 3);
	CHECK(find(&cache, &edit, 1) == NULL);
	CHECK(find(&cache, &edit, 2) != NULL);
	CHECK(find(&cache, &edit, 3) != NULL);
	edit_cache_fini(&cache);
}

// Changes beyond what the first table holds find room in the second, and are known there.
TEST(many_edits_move_to_a_larger_table)
{
	enum { COUNT = EDIT_CACHE_WAYS << (EDIT_CACHE_BITS_MANY - 1) };
	struct edit_cache cache;
	uint32_t known = 0;

	edit_cache_init(&cache);
	for (int round = 0; round < 3; round++) {
		known = 0;
		for (uint32_t i = 0; i < COUNT; i++) {
			struct edit edit = { .push = 1, .frames = { i + 1 } };
			bool found = find(&cache, &edit, i) != NULL;

			known += found;
			cache.found += 1; // others are
			if (!found)
				put(&cache, &edit, i);
		}
		CHECK(round > 0 || known == 0);
		CHECK(cache.lines == cache.many);
	}
	CHECK(known > COUNT / 2);
	edit_cache_fini(&cache);
}

// A table that is touched for the first time costs more than it brings where nothing comes again:
// there it is tried with many more.
TEST(edits_that_never_come_again_stay_in_the_small_table_for_long)
{
	enum { FEW = EDIT_CACHE_WAYS << EDIT_CACHE_BITS_FEW };
	struct edit_cache cache;
	uint32_t count = 0;

	edit_cache_init(&cache);
	for (; cache.many == NULL && count < 100 * FEW; count++) {
		struct edit edit = { .push = 1, .frames = { count + 1 } };

		put(&cache, &edit, count);
	}
	CHECK(count > 10 * FEW && count < 30 * FEW);
	edit_cache_fini(&cache);
}

TEST(few_edits_stay_in_the_small_table)
{
	struct edit_cache cache;

	edit_cache_init(&cache);
	for (uint32_t i = 0; i < 400; i++) {
		struct edit edit = { .push = 1, .frames = { i + 1 } };

		put(&cache, &edit, i);
	}
	for (uint32_t i = 0; i < 400; i++) {
		struct edit edit = { .push = 1, .frames = { i + 1 } };

		CHECK(find(&cache, &edit, i) != NULL);
	}
	CHECK(cache.many == NULL);
	edit_cache_fini(&cache);
}

TEST(a_line_that_is_free_is_of_no_edit)
{
	struct edit edit = { .push = 1 };
	struct edit_cache cache;

	edit_cache_init(&cache);
	CHECK(find(&cache, &edit, 0) == NULL);
	edit_cache_fini(&cache);
}

TEST(tags_are_given_once_until_there_are_none)
{
	struct edit_cache cache;

	edit_cache_init(&cache);
	CHECK_EQ(EDIT_CACHE_TAG, edit_cache_tag(&cache));
	CHECK_EQ(2 * EDIT_CACHE_TAG, edit_cache_tag(&cache));
	cache.tags = EDIT_CACHE_TAGS - 2;
	CHECK_EQ((uint32_t)(EDIT_CACHE_TAGS - 1) * EDIT_CACHE_TAG, edit_cache_tag(&cache));
	CHECK_EQ(0, edit_cache_tag(&cache));
	edit_cache_fini(&cache);
}
