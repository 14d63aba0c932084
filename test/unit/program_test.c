// What launch/program.h promises about finding programs.
#include "test/test.h"

#include "launch/program.h"
#include "os/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *make(const char *name, mode_t mode)
{
	static char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	CHECK(fd >= 0);
	CHECK_EQ(0, fchmod(fd, mode));
	close(fd);
	return path;
}

static char *folder(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", test_temp_dir(), name);
	CHECK_EQ(0, mkdir(path, 0755));
	return path;
}

TEST(program_is_found_in_the_first_folder_that_has_it)
{
	struct str found = { 0 };
	struct err err = { 0 };
	char search[8192];

	folder("a");
	folder("b");
	make("b/tool", 0755);
	snprintf(search, sizeof(search), "%s/none:%s/a:%s/b", test_temp_dir(), test_temp_dir(),
		 test_temp_dir());
	CHECK_EQ(PROGRAM_FOUND, program_find("tool", search, &found, &err));
	CHECK_CONTAINS("/b/tool", str_get(&found));
	make("a/tool", 0755);
	CHECK_EQ(PROGRAM_FOUND, program_find("tool", search, &found, &err));
	CHECK_CONTAINS("/a/tool", str_get(&found));
	str_fini(&found);
}

TEST(program_skips_what_cannot_be_executed_and_says_so_if_nothing_better_comes)
{
	struct str found = { 0 };
	struct err err = { 0 };
	char search[8192];

	folder("a");
	folder("b");
	make("a/tool", 0644);
	snprintf(search, sizeof(search), "%s/a:%s/b", test_temp_dir(), test_temp_dir());
	CHECK_EQ(PROGRAM_REFUSED, program_find("tool", search, &found, &err));
	CHECK_CONTAINS("tool is not executable", err.text);
	make("b/tool", 0755);
	CHECK_EQ(PROGRAM_FOUND, program_find("tool", search, &found, &err));
	CHECK_CONTAINS("/b/tool", str_get(&found));
	str_fini(&found);
}

TEST(program_in_a_folder_that_may_not_be_searched_is_not_called_not_executable)
{
	bool root = geteuid() == 0;
	struct str found = { 0 };
	struct err err = { 0 };
	char search[8192], path[8192];

	CHECK_EQ(0, chmod(folder("hidden"), 0));
	snprintf(search, sizeof(search), "%s/hidden:/none", test_temp_dir());
	snprintf(path, sizeof(path), "%s/hidden/tool", test_temp_dir());
	CHECK_EQ(0, root ? seteuid(65534) : 0);
	CHECK_EQ(PROGRAM_MISSING, program_find("tool", search, &found, &err));
	CHECK_CONTAINS("no such program in PATH, of which ", err.text);
	CHECK_CONTAINS("/hidden may not be searched", err.text);
	CHECK_EQ(PROGRAM_REFUSED, program_find(path, NULL, &found, &err));
	CHECK_CONTAINS("may not be searched", err.text);
	CHECK_EQ(0, root ? seteuid(0) : 0);
	str_fini(&found);
}

TEST(program_with_a_slash_stands_for_itself)
{
	struct str found = { 0 };
	struct err err = { 0 };
	const char *path = make("tool", 0755);

	CHECK_EQ(PROGRAM_FOUND, program_find(path, "/nonexistent", &found, &err));
	CHECK_STR(path, str_get(&found));
	CHECK_EQ(PROGRAM_REFUSED, program_find(test_temp_dir(), NULL, &found, &err));
	CHECK_CONTAINS("is a directory", err.text);
	CHECK_EQ(PROGRAM_MISSING, program_find("./no/such", NULL, &found, &err));
	str_fini(&found);
}

TEST(program_that_is_nowhere_is_missing)
{
	struct str found = { 0 };
	struct err err = { 0 };

	CHECK_EQ(PROGRAM_MISSING, program_find("no-such-program", "/bin:/usr/bin", &found, &err));
	CHECK_CONTAINS("no-such-program", err.text);
	CHECK_EQ(PROGRAM_MISSING, program_find("", "/bin", &found, &err));
	CHECK_EQ(PROGRAM_FOUND, program_find("sh", NULL, &found, &err));
	str_fini(&found);
}

TEST(file_name_is_what_follows_the_last_slash)
{
	CHECK_STR("c", file_name("/a/b/c"));
	CHECK_STR("c", file_name("c"));
	CHECK_STR("", file_name("a/"));
}
