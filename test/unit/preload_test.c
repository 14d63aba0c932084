// What launch/preload.h promises about the program's environment.
#include "test/test.h"

#include "launch/preload.h"

#include <stdlib.h>
#include <string.h>

static const char *value_of(char **environment, const char *name)
{
	const char *found = NULL;
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (strncmp(*environment, name, length) != 0 || (*environment)[length] != '=')
			continue;
		CHECK(found == NULL); // once only
		found = *environment + length + 1;
	}
	return found;
}

TEST(preload_puts_the_recorder_in_front_and_keeps_the_rest)
{
	char *before[] = { (char *)"A=1", (char *)"LD_PRELOAD=/x.so /y.so",
			   (char *)"LD_PRELOADED=z", (char *)"TIDEMARK_SESSION=old", NULL };
	char **after = preload_environment(before, "/lib/tidemark.so", "new");

	CHECK_STR("/lib/tidemark.so:/x.so /y.so", value_of(after, "LD_PRELOAD"));
	CHECK_STR("new", value_of(after, "TIDEMARK_SESSION"));
	CHECK_STR("1", value_of(after, "A"));
	CHECK_STR("z", value_of(after, "LD_PRELOADED"));
	preload_free_environment(after);
}

TEST(preload_in_an_empty_environment_is_the_recorder_alone)
{
	char *before[] = { NULL };
	char **after = preload_environment(before, "/lib/tidemark.so", "new");

	CHECK_STR("/lib/tidemark.so", value_of(after, "LD_PRELOAD"));
	preload_free_environment(after);
	after = preload_environment(before, NULL, "new");
	CHECK(value_of(after, "LD_PRELOAD") == NULL);
	CHECK_STR("new", value_of(after, "TIDEMARK_SESSION"));
	preload_free_environment(after);
}

TEST(preload_sessions_differ)
{
	char one[PRELOAD_SESSION_BYTES], two[PRELOAD_SESSION_BYTES];
	struct err err = { 0 };

	CHECK(preload_session(one, &err));
	CHECK(preload_session(two, &err));
	CHECK_EQ(strlen("tidemark-") + 32, strlen(one));
	CHECK(strcmp(one, two) != 0);
}

TEST(preload_refuses_a_library_that_the_loader_cannot_name)
{
	struct str path = { 0 };
	struct err err = { 0 };

	setenv("TIDEMARK_LIBRARY", "/nonexistent.so", 1);
	CHECK(!preload_find_library(&path, &err));
	CHECK_CONTAINS("/nonexistent.so", err.text);
	setenv("TIDEMARK_LIBRARY", "/bin/sh", 1);
	CHECK(preload_find_library(&path, &err));
	unsetenv("TIDEMARK_LIBRARY");
	str_fini(&path);
}

TEST(preload_names_the_library_of_either_class_where_there_are_both)
{
	static const char *const places[] = { "preload/lib/x86_64-linux-gnu", "preload/lib32" };
	struct str plain = { 0 }, either = { 0 }, command = { 0 };
	const char *folder = test_temp_dir();

	str_format(&plain, "%s/libtidemark.so", folder);
	preload_find_either(str_get(&plain), &either);
	CHECK_STR("", str_get(&either));
	for (int i = 0; i < 2; i++) {
		preload_find_either(str_get(&plain), &either);
		CHECK_STR("", str_get(&either));
		str_clear(&command);
		str_format(&command, "mkdir -p %s/%s && touch %s/%s/libtidemark.so", folder,
			   places[i], folder, places[i]);
		CHECK_EQ(0, system(str_get(&command)));
	}
	preload_find_either(str_get(&plain), &either);
	str_clear(&command);
	str_format(&command, "%s/preload/$LIB/libtidemark.so", folder);
	CHECK_STR(str_get(&command), str_get(&either));
	STR_FINI(&plain, &either, &command);
}
