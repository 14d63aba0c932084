// A line of the cache is found by all that it was made of, and by nothing else.
#include "collect/edit_cache.h"
#include "test/test.h"

// An edit as it lies in a lane, with room behind it.
struct edit {
	uint16_t keep, push;
	uint32_t frames[EDIT_CACHE_PUSHES];
};

static struct edit_cache_key key_of(const struct edit *edit, uint32_t tag)
{
	return edit_cache_key((const uint8_t *)edit, tag, edit->push);
}

static bool knows(const struct edit_cache *cache, const struct edit *edit, uint32_t tag,
		  stack_id parent)
{
	struct edit_cache_key key = key_of(edit, tag);

	return edit_cache_is(edit_cache_line(cache, &key, parent), &key, parent);
}

static const stack_id ids[EDIT_CACHE_PUSHES] = { 11, 12, 13, 14, 15, 16, 17 };

TEST(an_edit_is_known_by_its_image_its_callers_and_each_of_its_frames)
{
	struct edit_cache cache;

	edit_cache_init(&cache);
	for (uint16_t push = 1; push <= EDIT_CACHE_PUSHES; push++) {
		struct edit edit = { .keep = 9, .push = push, .frames = { 1, 2, 3, 4, 5, 6, 7 } };
		struct edit_cache_key key = key_of(&edit, 3);
		struct edit_cache_line *line = edit_cache_line(&cache, &key, 55);

		CHECK(!knows(&cache, &edit, 3, 55));
		edit_cache_put(line, &key, 55, ids, push);
		CHECK(knows(&cache, &edit, 3, 55));
		CHECK_EQ(10 + push, line->ids[push - 1]);
		CHECK_EQ(push, line->frames[push - 1]);
		CHECK(!edit_cache_is(line, &key, 56));
		key = key_of(&edit, 4);
		CHECK(!edit_cache_is(line, &key, 55));
		for (int i = 0; i < EDIT_CACHE_PUSHES; i++) {
			edit.frames[i] ^= 0x80000000;
			key = key_of(&edit, 3);
			CHECK_EQ(i >= push, edit_cache_is(line, &key, 55));
			edit.frames[i] ^= 0x80000000;
		}
		edit.push = push % EDIT_CACHE_PUSHES + 1;
		key = key_of(&edit, 3);
		CHECK(!edit_cache_is(line, &key, 55));
	}
	edit_cache_fini(&cache);
}

TEST(a_line_that_is_free_is_of_no_edit)
{
	struct edit edit = { .push = 1 };
	struct edit_cache cache;

	edit_cache_init(&cache);
	CHECK(!knows(&cache, &edit, 1, 0));
	edit_cache_fini(&cache);
}

TEST(tags_are_given_once_until_there_are_none)
{
	struct edit_cache cache;

	edit_cache_init(&cache);
	CHECK_EQ(1, edit_cache_tag(&cache));
	CHECK_EQ(2, edit_cache_tag(&cache));
	cache.tags = EDIT_CACHE_TAGS - 2;
	CHECK_EQ(EDIT_CACHE_TAGS - 1, edit_cache_tag(&cache));
	CHECK_EQ(0, edit_cache_tag(&cache));
	edit_cache_fini(&cache);
}
