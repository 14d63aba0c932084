// What stands behind a '?': what view/params.h promises.
#include "test/test.h"
#include "view/params.h"

TEST(params_are_taken_off_their_encoding)
{
	struct params params;
	struct err err = { 0 };
	const char *value;

	CHECK(params_parse(&params, "by=a%2Cb&frame=%5Ex+y%2b&&empty&none=", &err));
	CHECK(params_take(&params, "by", &value, &err));
	CHECK_STR("a,b", value);
	CHECK(params_take(&params, "frame", &value, &err));
	CHECK_STR("^x y+", value);
	CHECK(params_take(&params, "empty", &value, &err));
	CHECK_STR("", value);
	CHECK(params_take(&params, "missing", &value, &err));
	CHECK(value == NULL);
	CHECK(!params_check_taken(&params, &err));
	CHECK(params_take(&params, "none", &value, &err));
	CHECK(params_check_taken(&params, &err));
	params_fini(&params);
}

TEST(params_refuse_what_is_no_encoding)
{
	static const char *const wrong[] = { "a=%", "a=%1", "a=%g0", "a=%0g", "%00=a", "a=%00" };
	struct params params;
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK(!params_parse(&params, wrong[i], &err));
		CHECK_EQ(ERR_USAGE, err.kind);
		params_fini(&params);
	}
}

TEST(params_are_not_endless)
{
	struct params params;
	struct err err = { 0 };
	struct str text = { 0 };

	for (int i = 0; i < PARAMS_MAX; i++)
		str_add(&text, "&size=1");
	CHECK(params_parse(&params, str_get(&text), &err));
	CHECK_EQ(PARAMS_MAX, params.count);
	params_fini(&params);
	str_add(&text, "&size=1");
	CHECK(!params_parse(&params, str_get(&text), &err));
	CHECK_EQ(ERR_LIMIT, err.kind);
	params_fini(&params);
	str_fini(&text);
}

TEST(params_that_have_one_value_can_be_given_once)
{
	static const char *const words[] = { "one", "two", NULL };
	struct params params;
	struct err err = { 0 };
	uint64_t number = 7;
	int index = 0;

	CHECK(params_parse(&params, "n=5&n=6&w=two&m=9", &err));
	CHECK(!params_take_number(&params, "n", 0, 10, &number, &err));
	CHECK_EQ(7, number);
	CHECK(params_take_word(&params, "w", words, &index, &err));
	CHECK_EQ(1, index);
	CHECK(!params_take_number(&params, "m", 0, 8, &number, &err));
	CHECK(params_take_number(&params, "m", 0, 9, &number, &err));
	CHECK_EQ(9, number);
	params_fini(&params);
}

TEST(params_know_the_filters_of_the_command_line)
{
	struct selection_words words = { 0 };
	struct params params;
	struct err err = { 0 };

	CHECK(params_parse(&params, "size=1&size=2&from=1s&not-frame=x", &err));
	CHECK(params_take_filters(&params, 0, &words, &err));
	CHECK(params_check_taken(&params, &err));
	CHECK_EQ(2, words.lists[SELECTION_SIZE].count);
	CHECK_STR("x", selection_words_get(&words, SELECTION_NOT_FRAME));
	selection_words_fini(&words);
	params_fini(&params);

	CHECK(params_parse(&params, "from=1s", &err));
	CHECK(params_take_filters(&params, 1u << SELECTION_FROM, &words, &err));
	CHECK(!params_check_taken(&params, &err));
	selection_words_fini(&words);
	params_fini(&params);

	CHECK(params_parse(&params, "from=1s&from=2s", &err));
	CHECK(!params_take_filters(&params, 0, &words, &err));
	selection_words_fini(&words);
	params_fini(&params);
}
