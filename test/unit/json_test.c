// base/json.h: what is written parses, whatever bytes went in.
#include "base/json.h"
#include "test/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Where each test writes.
static struct str out;
static struct sink sink;

static struct json begin(bool pretty)
{
	struct json json;

	str_fini(&out);
	sink = sink_to_str(&out);
	json_init(&json, &sink, pretty);
	return json;
}

static void check_written(const char *expected)
{
	CHECK_STR(expected, str_get(&out));
	str_fini(&out);
}

TEST(json_puts_commas_between_values_only)
{
	struct json json = begin(false);

	json_object_begin(&json);
	json_kv_u64(&json, "a", UINT64_MAX);
	json_kv_string(&json, "b", NULL);
	json_kv_bool(&json, "c", true);
	json_kv_u64_if(&json, "k", true, 3);
	json_kv_u64_if(&json, "n", false, 4);
	json_key(&json, "d");
	json_array_begin(&json);
	json_i64(&json, INT64_MIN);
	json_hex(&json, 31);
	json_array_begin(&json);
	json_array_end(&json);
	json_object_begin(&json);
	json_object_end(&json);
	json_bool(&json, false);
	json_array_end(&json);
	json_key(&json, "e");
	json_null(&json);
	json_object_end(&json);
	check_written("{\"a\":18446744073709551615,\"b\":null,\"c\":true,\"k\":3,\"n\":null,"
		      "\"d\":[-9223372036854775808,\"0x1f\",[],{},false],\"e\":null}");
}

TEST(json_pretty_indents_by_two)
{
	struct json json = begin(true);

	json_object_begin(&json);
	json_key(&json, "sites");
	json_array_begin(&json);
	json_u64(&json, 1);
	json_object_begin(&json);
	json_kv_u64(&json, "n", 2);
	json_object_end(&json);
	json_array_end(&json);
	json_key(&json, "none");
	json_array_begin(&json);
	json_array_end(&json);
	json_object_end(&json);
	check_written("{\n"
		      "  \"sites\": [\n"
		      "    1,\n"
		      "    {\n"
		      "      \"n\": 2\n"
		      "    }\n"
		      "  ],\n"
		      "  \"none\": []\n"
		      "}");
}

static void check_string(const char *expected, const char *bytes, size_t length)
{
	struct json json = begin(false);

	json_string_bytes(&json, (const char *)test_guarded_copy(bytes, length), length);
	check_written(expected);
}

TEST(json_escapes_what_must_be_escaped)
{
	check_string("\"\"", "", 0);
	check_string("\"a\\\"b\\\\c/\"", "a\"b\\c/", 6);
	check_string("\"\\b\\f\\n\\r\\t\"", "\b\f\n\r\t", 5);
	check_string("\"\\u0000\\u0001\\u001f\x7f\"", "\0\1\x1f\x7f", 4);
}

TEST(json_keeps_utf8_and_replaces_what_is_not)
{
	check_string("\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
		     "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	check_string("\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"",
		     "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", 10);
#define BAD "\xef\xbf\xbd"
	check_string("\"a" BAD "b\"",
		     "a\xff"
		     "b",
		     3);
	check_string("\"" BAD BAD "\"", "\xc0\x80", 2);                 // longer than needed
	check_string("\"" BAD BAD BAD "\"", "\xe0\x9f\xbf", 3);         // longer than needed
	check_string("\"" BAD BAD BAD "\"", "\xed\xa0\x80", 3);         // half of a surrogate pair
	check_string("\"" BAD BAD BAD BAD "\"", "\xf4\x90\x80\x80", 4); // past the last one
	check_string("\"" BAD "\"", "\xc3", 1);                         // cut
	check_string("\"" BAD BAD "\"", "\xe2\x82", 2);                 // cut
	check_string("\"" BAD "x\"", "\xc3x", 2);
#undef BAD
}

TEST(json_doubles_read_back_as_the_same_number)
{
	static const double numbers[] = {
		0, 0.1, 1.0 / 3, 1e300, -2.5e-300, 123456789.125, 5e-324
	};

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		struct json json = begin(false);

		json_double(&json, numbers[i]);
		CHECK(strtod(str_get(&out), NULL) == numbers[i]);
	}
	check_written("4.94065645841247e-324");
}

TEST(json_writes_null_for_numbers_that_it_has_no_word_for)
{
	struct json json = begin(false);

	json_array_begin(&json);
	json_double(&json, NAN);
	json_double(&json, INFINITY);
	json_double(&json, 0.1);
	json_array_end(&json);
	check_written("[null,null,0.1]");
}
