// test: a thin coat over cmocka, so that a test reads as a sentence that is true.
//
//     #include "test/test.h"
//
//     TEST(varint_refuses_an_empty_input)
//     {
//             CHECK_EQ(0, varint_decode(NULL, 0, &value));
//     }
//
// TEST registers itself; the main that runs what registered is in test.c. A test program takes
// names (or parts of names) of the tests to run, and --list. The first CHECK that does not hold
// ends its test. Each macro evaluates its arguments once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEST(name)                                                             \
	static void test_body_##name(void **test_state);                       \
	__attribute__((constructor)) static void test_constructor_##name(void) \
	{                                                                      \
		test_register(#name, test_body_##name);                        \
	}                                                                      \
	static void test_body_##name(__attribute__((unused)) void **test_state)

// It holds.
#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)

// Two integers (or pointers, or booleans) have the same value.
#define CHECK_EQ(expected, actual) \
	test_check_eq((long long)(expected), (long long)(actual), #actual, __FILE__, __LINE__)

// Two numbers differ by at most `tolerance`.
#define CHECK_NEAR(expected, actual, tolerance) \
	test_check_near(expected, actual, tolerance, #actual, __FILE__, __LINE__)

// Two texts are equal. NULL equals only NULL.
#define CHECK_STR(expected, actual) test_check_str(expected, actual, #actual, __FILE__, __LINE__)

// `part` occurs in `text`.
#define CHECK_CONTAINS(part, text) test_check_contains(part, text, #text, __FILE__, __LINE__)

// `size` bytes are equal.
#define CHECK_BYTES(expected, actual, size) \
	test_check_bytes(expected, actual, size, #actual, __FILE__, __LINE__)

// End this test without a verdict. The reason is printed and counted.
#define SKIP(reason) test_skip(reason)

// A copy of `size` bytes that ends at an unmapped page, so that reading one byte too far is a
// crash. Given back when the test ends.
uint8_t *test_guarded_copy(const void *bytes, size_t size);

// An empty directory of this test's own, removed with all that is in it when the test ends. The
// same one each time within a test.
const char *test_temp_dir(void);

// "DIR/name" in test_temp_dir. Given back when the test ends.
const char *test_temp_path(const char *name);

// "ROOT/name" in the source tree ($TIDEMARK_SOURCE, or where the test was compiled).
const char *test_source_path(const char *name);

// What the macros call.
void test_register(const char *name, void (*body)(void **state));
void test_check(bool holds, const char *what, const char *file, int line);
void test_check_eq(long long expected, long long actual, const char *what, const char *file,
		   int line);
void test_check_near(double expected, double actual, double tolerance, const char *what,
		     const char *file, int line);
void test_check_str(const char *expected, const char *actual, const char *what, const char *file,
		    int line);
void test_check_contains(const char *part, const char *text, const char *what, const char *file,
			 int line);
void test_check_bytes(const void *expected, const void *actual, size_t size, const char *what,
		      const char *file, int line);
_Noreturn void test_skip(const char *reason);
