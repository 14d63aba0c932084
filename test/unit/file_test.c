// os/file.h: files as memory, all of them or an error that says why not.
#include "os/file.h"
#include "test/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A file of `size` bytes: 0, 1, 2 … 250, 0 …
static const char *make_file(size_t size)
{
	const char *path = test_temp_path("file");
	FILE *file = fopen(path, "w");

	CHECK(file);
	for (size_t i = 0; i < size; i++)
		fputc((int)(i % 251), file);
	CHECK_EQ(0, fclose(file));
	return path;
}

static void check_view_of(size_t size)
{
	struct file_view view = { 0 };
	struct err err = { 0 };

	CHECK(file_view_open(&view, make_file(size), &err));
	CHECK(view.bytes);
	CHECK_EQ(size, view.size);
	for (size_t i = 0; i < size; i++)
		CHECK_EQ(i % 251, view.bytes[i]);
	file_view_close(&view);
	CHECK(!view.bytes);
	file_view_close(&view);
}

TEST(file_is_claimed_until_all_copies_of_the_descriptor_are_closed)
{
	const char *path = make_file(10);
	int writer = file_open(path, FILE_WRITE), reader = file_open(path, FILE_READ), copy;

	CHECK(writer >= 0 && reader >= 0);
	CHECK(!file_is_claimed(reader));
	file_claim(writer);
	CHECK(file_is_claimed(reader));
	copy = dup(writer);
	CHECK(file_close(writer));
	CHECK(file_close(file_open(path, FILE_READ)));
	CHECK(file_is_claimed(reader));
	CHECK(file_close(copy));
	CHECK(!file_is_claimed(reader));
	CHECK(file_close(reader));
}

TEST(file_view_shows_every_byte)
{
	check_view_of(1);
	check_view_of(4095);
	check_view_of(4096);
	check_view_of(100001);
}

TEST(file_view_of_an_empty_file_is_empty_but_there)
{
	check_view_of(0);
}

TEST(file_view_outlives_the_name_of_the_file)
{
	struct file_view view = { 0 };
	struct err err = { 0 };
	const char *path = make_file(10000);

	CHECK(file_view_open(&view, path, &err));
	CHECK_EQ(0, unlink(path));
	CHECK_EQ(9999 % 251, view.bytes[9999]);
	file_view_close(&view);
}

TEST(file_view_reads_what_cannot_be_mapped)
{
	struct file_view view = { 0 };
	struct err err = { 0 };
	int ends[2];

	CHECK_EQ(0, pipe(ends));
	CHECK_EQ(5, write(ends[1], "event", 5));
	close(ends[1]);
	CHECK(file_view_fd(&view, ends[0], &err));
	close(ends[0]);
	CHECK_EQ(5, view.size);
	CHECK_BYTES("event", view.bytes, 5);
	file_view_close(&view);

	CHECK(file_view_open(&view, "/proc/self/maps", &err));
	CHECK(view.size > 100);
	file_view_close(&view);
}

TEST(file_view_says_why_not)
{
	struct file_view view = { 0 };
	struct err err = { 0 };
	const char *missing = test_temp_path("missing");
	char expected[600];

	CHECK(!file_view_open(&view, missing, &err));
	CHECK_EQ(ERR_IO, err.kind);
	snprintf(expected, sizeof expected, "cannot open %s: No such file or directory", missing);
	CHECK_STR(expected, err.text);

	CHECK(!file_view_open(&view, test_temp_dir(), &err));
	snprintf(expected, sizeof expected, "cannot read %s: it is a directory", test_temp_dir());
	CHECK_STR(expected, err.text);
	CHECK(!view.bytes);
}

TEST(file_write_all_writes_more_than_a_pipe_holds)
{
	enum { SIZE = 1 << 20 };
	uint8_t *bytes = calloc(SIZE, 1);
	struct str got = { 0 };
	struct err err = { 0 };
	int ends[2];
	pid_t child;

	CHECK_EQ(0, pipe(ends));
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(i * 31 >> 4);
	child = fork();
	if (child == 0)
		_exit(file_write_all(ends[1], bytes, SIZE, &err) ? 0 : 1);
	CHECK(child > 0);
	close(ends[1]);
	CHECK(file_read_all(ends[0], &got, &err));
	close(ends[0]);
	CHECK_EQ(SIZE, got.length);
	CHECK_BYTES(bytes, got.text, SIZE);
	str_fini(&got);
	free(bytes);
}

TEST(file_write_all_reports_a_full_disk)
{
	struct err err = { 0 };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		SKIP("/dev/full is not there");
	CHECK(!file_write_all(fd, "x", 1, &err));
	CHECK_EQ(ERR_IO, err.kind);
	CHECK_STR("cannot write: No space left on device", err.text);
	close(fd);
}

TEST(file_read_all_reports_what_cannot_be_read)
{
	struct str got = { 0 };
	struct err err = { 0 };
	int fd = open(test_temp_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(!file_read_all(fd, &got, &err));
	CHECK_STR("cannot read: Is a directory", err.text);
	close(fd);
	str_fini(&got);
}

TEST(file_temp_has_no_name_and_is_closed_on_exec)
{
	struct err err = { 0 };
	struct stat status;
	int fd;

	CHECK_EQ(0, setenv("TMPDIR", test_temp_dir(), 1));
	fd = file_temp(&err);
	CHECK(fd >= 0);
	CHECK_EQ(0, fstat(fd, &status));
	CHECK_EQ(0, status.st_nlink);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(file_write_all(fd, "abc", 3, &err));
	close(fd);

	CHECK_EQ(0, setenv("TMPDIR", "/proc/nowhere", 1));
	CHECK_EQ(-1, file_temp(&err));
	CHECK_CONTAINS("cannot create a temporary file in /proc/nowhere: ", err.text);
	unsetenv("TMPDIR");
}
