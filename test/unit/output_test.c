// What launch/output.h promises: a new file, and nobody's file overwritten.
#include "test/test.h"

#include "base/str.h"
#include "launch/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct output_made made;

static int create(const char *pattern, bool force, struct str *path, struct err *err)
{
	struct output_options options = {
		.pattern = pattern,
		.program = "server",
		.pid = 42,
		.force = force,
	};

	return output_create(&options, path, &made, err);
}

TEST(output_without_a_name_is_new_each_time_and_private)
{
	struct str path = { 0 };
	struct err err = { 0 };
	struct stat status;
	int fd;

	CHECK_EQ(0, chdir(test_temp_dir()));
	fd = create(NULL, false, &path, &err);
	CHECK(fd >= 0);
	CHECK_STR("tidemark.server.42.tide", str_get(&path));
	CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	CHECK_EQ(0, fstat(fd, &status));
	CHECK_EQ(0600, status.st_mode & 07777);
	close(fd);
	fd = create(NULL, true, &path, &err);
	CHECK(fd >= 0);
	CHECK_STR("tidemark.server.42.1.tide", str_get(&path));
	close(fd);
	CHECK_EQ(0, chdir("/"));
	str_fini(&path);
}

TEST(output_overwrites_only_when_forced)
{
	struct str path = { 0 };
	struct err err = { 0 };
	struct stat status;
	char name[4096], aside[4096];
	int fd;

	umask(022);
	snprintf(name, sizeof(name), "%s/mine", test_temp_dir());
	fd = open(name, O_CREAT | O_WRONLY, 0644);
	CHECK_EQ(4, write(fd, "mine", 4));
	close(fd);
	CHECK_EQ(-1, create(name, false, &path, &err));
	CHECK_CONTAINS("--force", err.text);
	CHECK_EQ(0, stat(name, &status));
	CHECK_EQ(4, status.st_size);
	fd = create(name, true, &path, &err);
	CHECK(fd >= 0);
	CHECK_EQ(0, fstat(fd, &status));
	CHECK_EQ(0, status.st_size);
	CHECK_EQ(0644, status.st_mode & 07777);
	close(fd);
	CHECK_EQ(0, stat(str_get(&made.aside), &status));
	output_undo(&made, name);
	CHECK_EQ(0, stat(name, &status));
	CHECK_EQ(4, status.st_size);
	fd = create(name, true, &path, &err);
	CHECK(fd >= 0);
	close(fd);
	snprintf(aside, sizeof(aside), "%s", str_get(&made.aside));
	output_begun(&made);
	CHECK_EQ(-1, stat(aside, &status));
	CHECK_EQ(0, stat(name, &status));
	CHECK_EQ(0, status.st_size);
	str_fini(&path);
}

TEST(output_takes_the_next_number_even_when_forced)
{
	struct str path = { 0 };
	struct err err = { 0 };
	char pattern[4096];

	snprintf(pattern, sizeof(pattern), "%s/run%%n", test_temp_dir());
	for (int i = 0; i < 3; i++) {
		char expected[16];
		int fd = create(pattern, true, &path, &err);

		CHECK(fd >= 0);
		snprintf(expected, sizeof(expected), "/run%d", i);
		CHECK_CONTAINS(expected, str_get(&path));
		close(fd);
	}
	str_fini(&path);
}

TEST(output_that_cannot_be_created_says_why)
{
	struct str path = { 0 };
	struct err err = { 0 };

	CHECK_EQ(-1, create("/nonexistent/folder/x", false, &path, &err));
	CHECK_CONTAINS("/nonexistent/folder/x", err.text);
	CHECK_EQ(-1, create("%q", false, &path, &err));
	CHECK_EQ(ERR_USAGE, err.kind);
	str_fini(&path);
}
