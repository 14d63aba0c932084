// No paths in what is given away: what view/scrub.h promises.
#include "test/test.h"
#include "view/scrub.h"

#include <stdio.h>
#include <string.h>

static const struct scrub scrub = { { 1, 2 } };

static const char *scrubbed(const char *json)
{
	static struct str text;

	str_clear(&text);
	scrub_json(&scrub, json, strlen(json), &text);
	return str_get(&text);
}

static const char *path_of(const char *path)
{
	static struct str text;

	str_clear(&text);
	scrub_path(&scrub, path, strlen(path), &text);
	return str_get(&text);
}

TEST(scrub_keeps_endings_and_nothing_else)
{
	CHECK_EQ(0, strncmp("path-", path_of("/home/me/app.c"), 5));
	CHECK_STR(".c", path_of("/home/me/app.c") + 13);
	CHECK_STR(".so.1", path_of("/usr/lib/libz.so.1") + 13);
	CHECK_STR("", path_of("/usr/bin/sh") + 13);
	CHECK_STR("", path_of("/home/.bashrc") + 13);
	CHECK_STR("", path_of("/home/v1.2") + 13);
	CHECK_STR("", path_of("/home/a.very-long-ending-indeed") + 13);
	CHECK_STR("", path_of(""));
}

TEST(scrub_gives_equal_paths_equal_names)
{
	char first[64];

	strcpy(first, path_of("/a/b.c"));
	CHECK_STR(first, path_of("/a/b.c"));
	CHECK(strcmp(first, path_of("/a/c.c")) != 0);
}

TEST(scrub_knows_keys_that_hold_paths_and_arguments)
{
	CHECK_STR("{\"args\":[\"***\",\"***\"],\"n\":\"ls\"}",
		  scrubbed("{\"args\":[\"ls\",\"/home\"],\"n\":\"ls\"}"));
	CHECK_EQ(0, strncmp("{\"exe\":\"path-", scrubbed("{\"exe\":\"sh\"}"), 13));
	CHECK_STR("{\"file\":\"\",\"line\":3}", scrubbed("{\"file\":\"\",\"line\":3}"));
	CHECK_STR("{\"args\":[],\"x\":\"a\"}", scrubbed("{\"args\":[],\"x\":\"a\"}"));
}

TEST(scrub_finds_paths_in_sentences)
{
	static const char before[] = "{\"warnings\":[\"cannot read path-";
	const char *text = scrubbed("{\"warnings\":[\"cannot read /home/me/x.so: gone\"]}");

	CHECK_EQ(0, strncmp(before, text, strlen(before)));
	CHECK_EQ(8, strspn(text + strlen(before), "0123456789abcdef"));
	CHECK_STR(".so: gone\"]}", text + strlen(before) + 8);
}

TEST(scrub_finds_paths_of_windows_in_sentences)
{
	static const char *const texts[] = {
		"\"cannot read C:\\\\Users\\\\hush\\\\app.pdb: gone\"",
		"\"(C:\\\\Program Files (x86)\\\\hush\\\\a.pdb)\"",
		"\"C:\\\\My Files\\\\hush\\\\a.exe+0x12\"",
		"\"from \\\\\\\\hush\\\\share\\\\a.tide\"",
		"\"\\\\Device\\\\HarddiskVolume3\\\\hush\\\\a.dll\"",
		"\"{lambda at C:\\src\\hush\\x.cc:12}\"", // as a name is before it is written
		"\"{lambda at src\\hush\\x.cc:12}\"",
		"\"cannot read src\\\\hush\\\\x.pdb, at all\"",
		"\"from ..\\\\hush\\\\tool\"",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		CHECK(!strstr(scrubbed(texts[i]), "hush"));
		CHECK_CONTAINS("path-", scrubbed(texts[i]));
	}
	CHECK_CONTAINS(".pdb: gone\"", scrubbed(texts[0]));
	CHECK_CONTAINS(".cc:12}\"", scrubbed(texts[5]));
	CHECK_CONTAINS(".cc:12}\"", scrubbed(texts[6]));
	CHECK_STR("\"one\\ntwo.c\"", scrubbed("\"one\\ntwo.c\""));
	CHECK_STR("\"App\\\\Models\\\\run\"", scrubbed("\"App\\\\Models\\\\run\""));
	CHECK_STR("\"on C:\\\"x\\\"\"", scrubbed("\"on C:\\\"x\\\"\""));
}

// One is written into JSON and one is not.
TEST(scrub_gives_equal_paths_of_windows_equal_names)
{
	char file[64];

	snprintf(file, sizeof file, "{\"file\":\"%s\"}", path_of("C:\\src\\x.c"));
	CHECK_STR(file, scrubbed("{\"file\":\"C:\\\\src\\\\x.c\"}"));
	snprintf(file, sizeof file, "\"at %s\"", path_of("C:\\src\\x.c"));
	CHECK_STR(file, scrubbed("\"at C:\\\\src\\\\x.c\""));
}

TEST(scrub_leaves_functions_alone)
{
	static const char *const names[] = {
		"\"operator/(int, int)\"",
		"\"a / b\"",
		"\"std::vector<int>::push_back(int&&)\"",
		"\"\\u0001\\\"x\\\\\"",
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		CHECK_STR(names[i], scrubbed(names[i]));
	CHECK(!strstr(scrubbed("\"libsecret.so+0x12\""), "secret"));
	CHECK(!strstr(scrubbed("\"{lambda at /home/me/x.cc:12}\""), "home"));
	CHECK_EQ(0, strncmp("\"\\u0001path-", scrubbed("\"\\u0001/home/me\""), 12));
}

TEST(scrub_survives_documents_that_are_cut)
{
	static const char json[] = "{\"args\":[\"a\\u00e9\",{\"file\":\"/x\\\\y\"}],\"e\":\"f\"}";
	struct str text = { 0 };

	for (size_t length = 0; length < sizeof json; length++) {
		const char *copy = (const char *)test_guarded_copy(json, length);

		str_clear(&text);
		scrub_json(&scrub, copy, length, &text);
		CHECK(!strstr(str_get(&text), "u00e9"));
		CHECK(!strstr(str_get(&text), "/x"));
	}
	CHECK_CONTAINS("],\"e\":\"f\"}", str_get(&text));
	str_fini(&text);
}
