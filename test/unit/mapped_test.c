// A file that is cut while it is mapped reads as zeros, and nothing ends.
#include "base/mem.h"
#include "os/file.h"
#include "os/mapped.h"
#include "test/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 4 };

static const char *write_file(size_t size)
{
	const char *path = test_temp_path("mapped");
	FILE *file = fopen(path, "w");

	for (size_t i = 0; i < size; i++)
		fputc('x', file);
	fclose(file);
	return path;
}

TEST(a_view_of_a_file_that_is_cut_reads_as_zeros)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *path = write_file(PAGES * page);
	struct file_view view;
	struct err err = { 0 };

	CHECK(file_view_open(&view, path, &err));
	CHECK_EQ(0, truncate(path, (off_t)page));
	for (size_t i = 0; i < PAGES; i++) {
		const volatile uint8_t *bytes = view.bytes;

		CHECK_EQ(i == 0 ? 'x' : 0, bytes[i * page]);
		CHECK_EQ(i == 0 ? 'x' : 0, bytes[i * page + page - 1]);
	}
	file_view_close(&view);
}

TEST(whether_a_page_was_gone_is_told)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *path = write_file(2 * page);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile char *bytes = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE, fd, 0);

	close(fd);
	CHECK(bytes != MAP_FAILED);
	mapped_watch((const void *)bytes, 2 * page);
	CHECK_EQ('x', bytes[page]);
	CHECK(!mapped_forget((const void *)bytes));
	mapped_watch((const void *)bytes, 2 * page);
	CHECK_EQ(0, truncate(path, 0));
	CHECK_EQ(0, bytes[page]);
	CHECK(mapped_forget((const void *)bytes));
	CHECK(!mapped_forget((const void *)bytes));
	munmap((void *)(uintptr_t)bytes, 2 * page);
}

TEST(what_is_not_watched_ends_the_program_as_ever)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const char *path = write_file(page);
	int fd = open(path, O_RDONLY | O_CLOEXEC), status = 0;
	const volatile char *bytes = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	pid_t child;

	close(fd);
	mapped_watch((const void *)bytes, page);
	mapped_forget((const void *)bytes);
	CHECK_EQ(0, truncate(path, 0));
	child = fork();
	if (child == 0) {
		volatile char seen = bytes[0];

		_exit(seen);
	}
	CHECK_EQ(child, waitpid(child, &status, 0));
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(SIGBUS, WTERMSIG(status));
	munmap((void *)(uintptr_t)bytes, page);
}
