// What launch/pattern.h promises about names of output files.
#include "test/test.h"

#include "launch/pattern.h"

#include <string.h>

static const struct pattern_words words = {
	.program = "server",
	.host = "box",
	.pid = 4242,
	.time_s = 1700000000,
	.number = 3,
};

TEST(pattern_fills_in_every_word)
{
	struct str out = { 0 };
	struct err err = { 0 };
	bool numbered = true;

	CHECK(pattern_expand(&out, "tidemark.%e.%p.%t-%h%%.tide", &words, &numbered, &err));
	CHECK_STR("tidemark.server.4242.1700000000-box%.tide", str_get(&out));
	CHECK(!numbered);
	str_clear(&out);
	CHECK(pattern_expand(&out, "%n", &words, &numbered, &err));
	CHECK_STR("3", str_get(&out));
	CHECK(numbered);
	str_fini(&out);
}

TEST(pattern_refuses_what_it_does_not_know)
{
	static const char *const bad[] = { "%x", "a%", "%%%" };
	struct str out = { 0 };

	for (size_t i = 0; i < 3; i++) {
		struct err err = { 0 };

		CHECK(!pattern_expand(&out, bad[i], &words, NULL, &err));
		CHECK_EQ(ERR_USAGE, err.kind);
		CHECK_CONTAINS(bad[i], err.text);
	}
	str_fini(&out);
}

TEST(pattern_keeps_names_of_programs_harmless_and_short)
{
	char name[300];
	struct pattern_words strange = words;
	struct str out = { 0 };
	struct err err = { 0 };

	strange.program = "a/b\nc\x7f d";
	CHECK(pattern_expand(&out, "%e", &strange, NULL, &err));
	CHECK_STR("a_b_c_ d", str_get(&out));
	str_clear(&out);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	strange.program = name;
	CHECK(pattern_expand(&out, "%e", &strange, NULL, &err));
	CHECK_EQ(100, out.length);
	str_fini(&out);
}
