// What was packed is what is read, and a broken bundle is refused or harmless.
#include "base/mem.h"
#include "symbols/symbols_bundle.h"
#include "test/test.h"

#include <string.h>

static void add(struct symbols_bundle_maker *maker, uint64_t offset, const struct place *items,
		size_t count)
{
	struct places places = { 0 };

	for (size_t i = 0; i < count; i++)
		*places_add(&places) = items[i];
	symbols_bundle_add(maker, offset, &places);
	places_fini(&places);
}

static uint8_t *make(size_t *size)
{
	static const struct place inlined[] = {
		{ .function = "_Z5innerv", .file = "/a/inner.h", .line = 3, .bare = true },
		{ .function = "outer", .file = "/a/outer.c", .line = 40 }
	};
	static const struct place plain[] = {
		{ .function = "outer", .file = "/a/outer.c", .line = 41 }
	};
	static const struct place no_line[] = { { .function = "from_the_symbol_table" } };
	static const struct place no_name[] = { { .file = "/a/outer.c", .line = INT32_MAX } };
	struct symbols_bundle_maker *maker = symbols_bundle_maker_new();
	uint8_t *bytes;

	add(maker, 0x5000, plain, 1);
	add(maker, 0x1000, inlined, 2);
	add(maker, UINT64_MAX, no_name, 1);
	add(maker, 0x1001, no_line, 1);
	bytes = symbols_bundle_take(maker, size);
	symbols_bundle_maker_free(maker);
	return bytes;
}

TEST(what_was_packed_is_what_is_read)
{
	struct symbols_bundle bundle;
	struct places places = { 0 };
	struct err err;
	size_t size;
	uint8_t *bytes = make(&size);

	CHECK(symbols_bundle_open(&bundle, bytes, size, &err));
	CHECK(symbols_bundle_find(&bundle, 0x1000, &places));
	CHECK_EQ(2, places.count);
	CHECK_STR("_Z5innerv", places.items[0].function);
	CHECK_STR("/a/inner.h", places.items[0].file);
	CHECK_EQ(3, places.items[0].line);
	CHECK(places.items[0].bare && !places.items[1].bare);
	CHECK_STR("outer", places.items[1].function);
	CHECK_EQ(40, places.items[1].line);

	places_clear(&places);
	CHECK(symbols_bundle_find(&bundle, 0x1001, &places));
	CHECK_STR("from_the_symbol_table", places.items[0].function);
	CHECK(places.items[0].file == NULL);
	CHECK_EQ(0, places.items[0].line);

	places_clear(&places);
	CHECK(symbols_bundle_find(&bundle, UINT64_MAX, &places));
	CHECK(places.items[0].function == NULL);
	CHECK_EQ(INT32_MAX, places.items[0].line);

	places_clear(&places);
	CHECK(symbols_bundle_find(&bundle, 0x5000, &places));
	CHECK_EQ(41, places.items[0].line);
	places_clear(&places);
	CHECK(!symbols_bundle_find(&bundle, 0x1002, &places));
	CHECK_EQ(0, places.count);
	places_fini(&places);
	mem_free(bytes);
}

TEST(equal_texts_are_stored_once)
{
	struct symbols_bundle_maker *maker = symbols_bundle_maker_new();
	char one[] = "a_function_with_a_long_name", two[] = "a_function_with_a_long_name";
	struct place places[] = { { .function = one }, { .function = two } };
	size_t size;
	void *bytes;

	add(maker, 1, places, 2);
	bytes = symbols_bundle_take(maker, &size);
	CHECK_EQ(24 + 16 + 2 * 12 + 1 + sizeof one, size);
	symbols_bundle_maker_free(maker);
	mem_free(bytes);
}

TEST(a_cut_bundle_is_refused)
{
	struct symbols_bundle bundle;
	struct err err;
	size_t size;
	uint8_t *bytes = make(&size);

	for (size_t cut = 0; cut < size; cut++)
		CHECK(!symbols_bundle_open(&bundle, test_guarded_copy(bytes, cut), cut, &err));
	mem_free(bytes);
}

TEST(any_byte_changed_is_refused_or_harmless)
{
	size_t size;
	uint8_t *bytes = make(&size);

	for (size_t at = 0; at < size; at++) {
		for (int flip = 1; flip < 256; flip <<= 1) {
			struct places places = { 0 };
			struct symbols_bundle bundle;
			struct err err;
			uint8_t *broken;

			bytes[at] ^= (uint8_t)flip;
			broken = test_guarded_copy(bytes, size);
			if (symbols_bundle_open(&bundle, broken, size, &err)) {
				symbols_bundle_find(&bundle, 0x1000, &places);
				symbols_bundle_find(&bundle, 0x5000, &places);
				for (size_t i = 0; i < places.count; i++) {
					const struct place *place = &places.items[i];

					CHECK(!place->function || strlen(place->function) < size);
					CHECK(!place->file || strlen(place->file) < size);
				}
			}
			places_fini(&places);
			bytes[at] ^= (uint8_t)flip;
		}
	}
	mem_free(bytes);
}

TEST(a_bundle_of_a_later_version_is_refused_by_name)
{
	struct symbols_bundle bundle;
	struct err err;
	size_t size;
	uint8_t *bytes = make(&size);

	bytes[8] = 2;
	CHECK(!symbols_bundle_open(&bundle, bytes, size, &err));
	CHECK_CONTAINS("version 2", err.text);
	mem_free(bytes);
}
