// A small image of our own: whole, cut at every byte, and with every word of its tables changed.
#include "pe_sample.h"
#include "symbols/pe_names.h"
#include "test/test.h"
#include "trace/pe.h"

static void open_sample(struct pe *pe, bool symbols)
{
	uint8_t bytes[SAMPLE_BYTES];
	struct err err;

	sample_make(bytes, symbols);
	CHECK(pe_open(pe, test_guarded_copy(bytes, sizeof bytes), sizeof bytes, &err));
}

// Everything that can be asked of it.
static void use(struct pe *pe)
{
	struct pe_names names;
	size_t left;

	pe_names_init(&names, pe);
	pe_names_add_coff(&names);
	pe_names_add_exports(&names);
	pe_names_build(&names);
	for (uint32_t rva = 0; rva < 0x2400; rva += 7) {
		if (!pe_names_find(&names, rva))
			pe_names_unnamed(&names, "sample.dll", rva);
		pe_rest(pe, rva, &left);
		pe_text(pe, rva);
	}
	pe_names_fini(&names);
}

TEST(pe_says_what_identifies_the_image)
{
	struct pe pe;

	open_sample(&pe, false);
	CHECK(pe.is_64);
	CHECK_EQ(SAMPLE_TIMESTAMP, pe.timestamp);
	CHECK_EQ(0x3000, pe.image_bytes);
	CHECK_EQ(0x140000000, pe.base);
	CHECK(pe.has_codeview);
	CHECK_BYTES(sample_guid, pe.guid, 16);
	CHECK_EQ(3, pe.age);
	CHECK_STR("app.pdb", pe.pdb);
	CHECK_EQ(2, pe.sections_count);
	CHECK(pe_section_named(&pe, ".text") == &pe.sections[0]);
	CHECK(pe_section_named(&pe, ".tex") == NULL);
	CHECK(pe_at(&pe, SAMPLE_CODE + 0x1ff, 1) != NULL);
	CHECK(pe_at(&pe, SAMPLE_CODE + 0x1ff, 2) == NULL);
	pe_close(&pe);
}

TEST(an_export_names_its_own_function_and_nothing_behind_it)
{
	struct pe_names names;
	struct pe pe;

	open_sample(&pe, false);
	pe_names_init(&names, &pe);
	pe_names_add_exports(&names);
	pe_names_build(&names);
	CHECK_STR("First", pe_names_find(&names, SAMPLE_CODE));
	CHECK_STR("First", pe_names_find(&names, SAMPLE_CODE + 0xf));
	CHECK_STR(NULL, pe_names_find(&names, SAMPLE_CODE + 0x10));
	CHECK_STR(NULL, pe_names_find(&names, SAMPLE_CODE + 0x20)); // in .pdata, not exported
	CHECK_STR("Third", pe_names_find(&names, SAMPLE_CODE + 0x41));
	CHECK_STR("app!sub_1020", pe_names_unnamed(&names, "app.exe", SAMPLE_CODE + 0x33));
	CHECK_STR("app!sub_1039", pe_names_unnamed(&names, "app", SAMPLE_CODE + 0x39));
	pe_names_fini(&names);
	pe_close(&pe);
}

TEST(the_symbol_table_names_every_function)
{
	struct pe_names names;
	struct pe pe;

	open_sample(&pe, true);
	pe_names_init(&names, &pe);
	CHECK_EQ(3, pe_names_add_coff(&names));
	pe_names_build(&names);
	CHECK_STR("first", pe_names_find(&names, SAMPLE_CODE + 2));
	CHECK_STR("eightchr", pe_names_find(&names, SAMPLE_CODE + 0x22));
	CHECK_STR(NULL, pe_names_find(&names, SAMPLE_CODE + 0x39)); // padding
	CHECK_STR("a_name_of_many_letters", pe_names_find(&names, SAMPLE_CODE + 0x42));
	pe_names_fini(&names);
	pe_close(&pe);
}

TEST(an_image_that_is_cut_anywhere_is_refused_or_read_as_far_as_it_goes)
{
	uint8_t bytes[SAMPLE_BYTES];
	size_t opened = 0;

	sample_make(bytes, true);
	for (size_t size = 0; size < sizeof bytes; size++) {
		uint8_t *copy = test_guarded_copy(bytes, size);
		struct err err = { 0 };
		struct pe pe;

		if (!pe_open(&pe, copy, size, &err)) {
			CHECK(*err.text);
			continue;
		}
		opened++;
		use(&pe);
		pe_close(&pe);
	}
	CHECK(opened > 0x500);
}

TEST(words_that_lie_do_no_harm)
{
	static const uint32_t lies[] = {
		0xffffffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0x10000, 1
	};
	uint8_t bytes[SAMPLE_BYTES];
	size_t opened = 0, refused = 0;

	for (size_t at = 0; at + 4 <= sizeof bytes; at += 2) {
		if (at >= 0x200 && at < 0x400)
			continue;
		for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
			struct err err = { 0 };
			struct pe pe;

			sample_make(bytes, true);
			bytes_put_u32(bytes + at, lies[i]);
			if (pe_open(&pe, bytes, sizeof bytes, &err)) {
				opened++;
				CHECK_EQ(sizeof bytes, pe.size_bytes);
				use(&pe);
				pe_close(&pe);
			} else {
				refused++;
				CHECK(*err.text);
			}
		}
	}
	CHECK(opened > 4000 && refused > 50);
}
