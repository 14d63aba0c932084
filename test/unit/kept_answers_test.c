// What view/kept_answers.h promises.
#include "test/test.h"
#include "view/kept_answers.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void add(struct kept_answers *kept, const char *question, size_t bytes, char byte)
{
	struct str body = { 0 };

	for (size_t i = 0; i < bytes; i++)
		str_add_char(&body, byte);
	kept_answers_add(kept, question, &body);
	str_fini(&body);
}

// So many bytes of an answer, all of them `byte`. 0: it is not kept.
static size_t found(struct kept_answers *kept, const char *question, char byte)
{
	struct str body = { 0 };
	size_t bytes = kept_answers_find(kept, question, &body) ? body.length : 0;

	for (size_t i = 0; i < body.length; i++)
		CHECK_EQ(byte, body.text[i]);
	str_fini(&body);
	return bytes;
}

TEST(what_was_asked_for_least_lately_goes_first)
{
	struct kept_answers kept;

	kept_answers_init(&kept);
	kept_answers_limit(&kept, 4000);
	add(&kept, "a", 1000, 'a');
	add(&kept, "b", 1000, 'b');
	add(&kept, "c", 1000, 'c');
	CHECK_EQ(1000, found(&kept, "a", 'a'));
	add(&kept, "d", 1500, 'd');
	CHECK_EQ(1000, found(&kept, "a", 'a'));
	CHECK_EQ(0, found(&kept, "b", 'b'));
	CHECK_EQ(1000, found(&kept, "c", 'c'));
	CHECK_EQ(1500, found(&kept, "d", 'd'));
	// The same once more changes nothing, and what is looked for is added to what was there.
	add(&kept, "d", 1, 'x');
	struct str body = { 0 };
	str_add(&body, "before");
	CHECK(kept_answers_find(&kept, "d", &body));
	CHECK_EQ(1506, body.length);
	CHECK_EQ(0, memcmp(body.text, "befored", 7));
	str_fini(&body);
	kept_answers_fini(&kept);
}

TEST(no_more_is_kept_than_may_be)
{
	struct kept_answers kept;

	kept_answers_init(&kept);
	add(&kept, "before there is room", 1, 'a');
	CHECK_EQ(0, found(&kept, "before there is room", 'a'));
	kept_answers_limit(&kept, 10000);
	add(&kept, "more than half", 5000, 'a');
	CHECK_EQ(0, found(&kept, "more than half", 'a'));
	for (int i = 0; i < 100; i++) {
		char question[16];

		snprintf(question, sizeof question, "%d", i);
		add(&kept, question, 3000, 'a');
		CHECK_EQ(3000, found(&kept, question, 'a'));
		CHECK(kept.bytes <= 10000);
	}
	CHECK_EQ(3000, found(&kept, "97", 'a'));
	CHECK_EQ(0, found(&kept, "96", 'a'));
	kept_answers_limit(&kept, 3500);
	CHECK_EQ(0, found(&kept, "99", 'a'));
	CHECK_EQ(3000, found(&kept, "97", 'a'));
	kept_answers_fini(&kept);
}

TEST(questions_take_room_too)
{
	struct kept_answers kept;
	char question[1500];

	kept_answers_init(&kept);
	kept_answers_limit(&kept, 4000);
	memset(question, 'q', sizeof question - 1);
	question[sizeof question - 1] = '\0';
	for (char first = 'a'; first <= 'c'; first++) {
		question[0] = first;
		add(&kept, question, 10, first);
		CHECK_EQ(10, found(&kept, question, first));
	}
	question[0] = 'a';
	CHECK_EQ(0, found(&kept, question, 'a'));
	kept_answers_fini(&kept);
}
