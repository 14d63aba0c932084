#include "test/test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TESTS_MAX = 512, KEPT_MAX = 65536 };

// Under a sanitizer: what does not fit into memory is NULL, as without one.
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1:halt_on_error=1";
}

static struct CMUnitTest tests[TESTS_MAX];
static size_t tests_count;

// What the running test was given and will give back.
static struct {
	struct {
		void *start;
		size_t size; // of a mapping; 0: from malloc
	} kept[KEPT_MAX];
	size_t kept_count;
	char *dir;
} running;

static void keep(void *start, size_t size)
{
	if (running.kept_count == KEPT_MAX)
		fail_msg("one test keeps more than %d things", KEPT_MAX);
	running.kept[running.kept_count].start = start;
	running.kept[running.kept_count].size = size;
	running.kept_count++;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	(void)status;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < running.kept_count; i++) {
		if (running.kept[i].size > 0)
			munmap(running.kept[i].start, running.kept[i].size);
		else
			free(running.kept[i].start);
	}
	running.kept_count = 0;
	if (running.dir) {
		nftw(running.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		free(running.dir);
		running.dir = NULL;
	}
	return 0;
}

uint8_t *test_guarded_copy(const void *bytes, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;
	uint8_t *start =
		mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED || mprotect(start + room, page, PROT_NONE) != 0)
		fail_msg("cannot map %zu bytes with a guard page", size);
	keep(start, room + page);
	if (size > 0)
		memcpy(start + room - size, bytes, size);
	return start + room - size;
}

const char *test_temp_dir(void)
{
	const char *parent = getenv("TMPDIR");
	size_t size = 4096;

	if (running.dir)
		return running.dir;
	running.dir = malloc(size);
	if (!running.dir)
		fail_msg("no memory");
	snprintf(running.dir, size, "%s/tidemark-test-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(running.dir))
		fail_msg("cannot make %s", running.dir);
	return running.dir;
}

static const char *join(const char *folder, const char *name)
{
	size_t size = strlen(folder) + strlen(name) + 2;
	char *path = malloc(size);

	if (!path)
		fail_msg("no memory");
	snprintf(path, size, "%s/%s", folder, name);
	keep(path, 0);
	return path;
}

const char *test_temp_path(const char *name)
{
	return join(test_temp_dir(), name);
}

const char *test_source_path(const char *name)
{
	const char *root = getenv("TIDEMARK_SOURCE");

	return join(root && *root ? root : TEST_SOURCE_ROOT, name);
}

void test_register(const char *name, void (*body)(void **state))
{
	if (tests_count == TESTS_MAX) {
		fprintf(stderr, "more than %d tests in one program\n", TESTS_MAX);
		exit(1);
	}
	tests[tests_count++] = (struct CMUnitTest){
		.name = name,
		.test_func = body,
		.teardown_func = teardown,
	};
}

void test_check(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	print_error("does not hold: %s\n", what);
	_fail(file, line);
}

void test_check_eq(long long expected, long long actual, const char *what, const char *file,
		   int line)
{
	if (expected == actual)
		return;
	print_error("%s: expected %lld (0x%llx), is %lld (0x%llx)\n", what, expected,
		    (unsigned long long)expected, actual, (unsigned long long)actual);
	_fail(file, line);
}

void test_check_near(double expected, double actual, double tolerance, const char *what,
		     const char *file, int line)
{
	if (actual >= expected - tolerance && actual <= expected + tolerance)
		return;
	print_error("%s: expected %.9g within %.9g, is %.9g\n", what, expected, tolerance, actual);
	_fail(file, line);
}

void test_check_str(const char *expected, const char *actual, const char *what, const char *file,
		    int line)
{
	if (expected == actual || (expected && actual && strcmp(expected, actual) == 0))
		return;
	print_error("%s:\n  expected: %s\n  is:       %s\n", what, expected ? expected : "(NULL)",
		    actual ? actual : "(NULL)");
	_fail(file, line);
}

void test_check_contains(const char *part, const char *text, const char *what, const char *file,
			 int line)
{
	if (text && strstr(text, part))
		return;
	print_error("%s:\n  expected somewhere in it: %s\n  is: %s\n", what, part,
		    text ? text : "(NULL)");
	_fail(file, line);
}

void test_check_bytes(const void *expected, const void *actual, size_t size, const char *what,
		      const char *file, int line)
{
	const uint8_t *left = expected;
	const uint8_t *right = actual;

	for (size_t i = 0; i < size; i++) {
		if (left[i] == right[i])
			continue;
		print_error("%s: byte %zu of %zu: expected 0x%02x, is 0x%02x\n", what, i, size,
			    left[i], right[i]);
		_fail(file, line);
	}
}

_Noreturn void test_skip(const char *reason)
{
	printf("# reason: %s\n", reason);
	fflush(stdout);
	_skip("", 0);
	abort(); // _skip does not come back, but does not say so to the compiler
}

static bool wanted(const char *name, int count, char **parts)
{
	for (int i = 0; i < count; i++) {
		if (strstr(name, parts[i]))
			return true;
	}
	return count == 0;
}

int main(int argc, char **argv)
{
	size_t chosen = 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < tests_count; i++)
			printf("%s\n", tests[i].name);
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < tests_count; i++) {
		if (wanted(tests[i].name, argc - 1, argv + 1))
			tests[chosen++] = tests[i];
	}
	if (chosen == 0) {
		fprintf(stderr, "no such test (--list shows what there is)\n");
		return 1;
	}
	return _cmocka_run_group_tests("tests", tests, chosen, NULL, NULL) != 0;
}
