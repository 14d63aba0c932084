// base/mem.h: memory that is there, or the command ends in one place.
#include "base/mem.h"
#include "test/test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

// How a child ends that runs `body`; its messages are not ours to show.
static int status_of(void (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		body();
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(child, waitpid(child, &status, 0));
	return status;
}

TEST(mem_alloc_gives_zeroed_memory_also_of_no_size)
{
	uint8_t *bytes = mem_alloc(1000, 3);
	void *nothing = mem_alloc(0, 8);

	for (int i = 0; i < 3000; i++)
		CHECK_EQ(0, bytes[i]);
	CHECK(nothing);
	mem_free(bytes);
	mem_free(nothing);
	mem_free(NULL);
}

TEST(mem_grow_doubles_and_keeps_what_was_there)
{
	size_t capacity = 0;
	uint32_t *items = NULL;

	for (uint32_t i = 0; i < 1000; i++) {
		items = mem_grow(items, &capacity, i + 1, sizeof *items);
		items[i] = i;
	}
	CHECK_EQ(1024, capacity);
	for (uint32_t i = 0; i < 1000; i++)
		CHECK_EQ(i, items[i]);
	CHECK(items == mem_grow(items, &capacity, 7, sizeof *items));
	CHECK_EQ(1024, capacity);
	mem_free(items);
}

TEST(mem_copies_end_with_a_nul)
{
	char *text = mem_copy_text("lane");
	char *bytes = mem_copy_bytes(test_guarded_copy("\0ab", 3), 3);
	char *nothing = mem_copy_bytes(NULL, 0);

	CHECK_STR("lane", text);
	CHECK_BYTES("\0ab", bytes, 4);
	CHECK_STR("", nothing);
	mem_free(text);
	mem_free(bytes);
	mem_free(nothing);
}

static void ask_for_more_than_a_size_can_say(void)
{
	mem_alloc(SIZE_MAX / 2, 3);
}

static void resize_to_more_than_a_size_can_say(void)
{
	mem_resize(NULL, SIZE_MAX / 2, 3);
}

static void grow_beyond_all_sizes(void)
{
	size_t capacity = 0;

	mem_grow(NULL, &capacity, SIZE_MAX - 1, 1);
}

TEST(mem_ends_the_command_with_3_where_there_is_not_enough)
{
	CHECK_EQ(3 << 8, status_of(ask_for_more_than_a_size_can_say));
	CHECK_EQ(3 << 8, status_of(resize_to_more_than_a_size_can_say));
	CHECK_EQ(3 << 8, status_of(grow_beyond_all_sizes));
}

static void be_mistaken(void)
{
	ASSERT(1 + 1 == 3);
}

static void be_right(void)
{
	ASSERT(1 + 1 == 2);
}

TEST(mem_asserts_in_every_build)
{
	int status = status_of(be_mistaken);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(SIGABRT, WTERMSIG(status));
	CHECK_EQ(0, status_of(be_right));
}

TEST(mem_area_grows_and_keeps_what_was_there)
{
	struct mem_area area = { 0 };
	size_t sizes[] = { 1, 5000, MEM_AREA_SMALL, MEM_AREA_SMALL + 1, 40u << 20 };
	size_t before = 0;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint8_t *bytes;

		mem_area_grow(&area, sizes[i]);
		bytes = area.at;
		CHECK(area.size >= sizes[i]);
		CHECK_EQ(0, (uintptr_t)bytes % 4096);
		for (size_t k = 0; k < before; k += 4096)
			CHECK_EQ(k / 4096 % 251, bytes[k]);
		for (size_t k = (before + 4095) / 4096 * 4096; k < sizes[i]; k += 4096) {
			CHECK_EQ(0, bytes[k]);
			bytes[k] = (uint8_t)(k / 4096 % 251);
		}
		before = sizes[i];
		mem_area_grow(&area, 1);
		CHECK(area.at == bytes && area.size >= before);
	}
	mem_area_fini(&area);
	CHECK(!area.at && area.size == 0);
	mem_area_fini(&area);
}

static int said_to;

static void say_to(const char *text)
{
	if (write(said_to, text, strlen(text)) < 0)
		_exit(1);
}

static void ask_for_too_much(void)
{
	mem_say_by(say_to);
	mem_alloc(SIZE_MAX, 2);
}

TEST(mem_last_words_go_where_they_are_read)
{
	char text[128] = { 0 };
	int pair[2];

	CHECK_EQ(0, pipe(pair));
	said_to = pair[1];
	CHECK(status_of(ask_for_too_much) != 0);
	close(pair[1]);
	CHECK(read(pair[0], text, sizeof text - 1) > 0);
	CHECK_CONTAINS("not enough memory for", text);
	close(pair[0]);
}

// By the tenth of a number: of ten that are alike, any may be in front.
static int compare_tens(const void *a, const void *b, void *context)
{
	uint32_t left = *(const uint32_t *)a / 10, right = *(const uint32_t *)b / 10;

	CHECK(context == &said_to);
	return left < right ? -1 : left > right;
}

static void sort_first(size_t count, size_t first)
{
	uint32_t *items = mem_alloc(count, sizeof *items);
	uint8_t *seen = mem_alloc(count, 1);

	for (uint32_t i = 0; i < count; i++)
		items[i] = (uint32_t)((i * UINT64_C(7919)) % count);
	mem_sort_first(items, count, first, sizeof *items, compare_tens, &said_to);
	for (uint32_t i = 0; i < count; i++) {
		CHECK_EQ(0, seen[items[i]]++);
		if (i < first)
			CHECK_EQ(i / 10, items[i] / 10);
	}
	MEM_FREE(items, seen);
}

TEST(mem_sort_first_finds_the_least_and_loses_none)
{
	static const size_t firsts[] = { 0, 1, 2, 3, 50, 999, 1000 };

	for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
		sort_first(1000, firsts[i]);
	sort_first(1, 1);
	sort_first(10007, 100);
	mem_sort_first(NULL, 0, 0, 4, compare_tens, &said_to);
}

enum { NOT_HERE = 77, OTHER = 1 };

// A tree of files at the place of the kernel's, in a namespace of mounts of our own: who we are in
// has no limit, and what is around it has one of 200 MiB. `line` is what comes before our group.
static void find_limit(const char *line, const char *root, const char *name, const char *none)
{
	char text[4096] = "", command[16384], *group;
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t before = mem_of_machine();

	if (!file || fread(text, 1, sizeof text - 1, file) == 0 || !(group = strstr(text, line)) ||
	    unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) != 0)
		_exit(NOT_HERE);
	group += strlen(line);
	group[strcspn(group, "\n")] = 0;
	snprintf(command, sizeof command,
		 "mkdir -p '%s/%s/in' && echo %u > '%s/%s' && echo %s > '%s/%s/%s'", root, group,
		 200u << 20, root, name, none, root, strcmp(group, "/") == 0 ? "in" : group, name);
	if (system(command) != 0)
		_exit(NOT_HERE);
	_exit(before > 200 << 20 && mem_of_machine() == 200 << 20 ? 0 : OTHER);
}

static void find_first(void)
{
	find_limit(":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
		   "9223372036854771712");
}

static void find_second(void)
{
	find_limit("0::", "/sys/fs/cgroup", "memory.max", "max");
}

TEST(mem_of_machine_is_the_limit_of_a_control_group_or_of_one_around_it_in_both_forms)
{
	int first = WEXITSTATUS(status_of(find_first)),
	    second = WEXITSTATUS(status_of(find_second));

	if (first == NOT_HERE && second == NOT_HERE)
		SKIP("no control group, or no namespace of mounts");
	CHECK(first == 0 || first == NOT_HERE);
	CHECK(second == 0 || second == NOT_HERE);
}
