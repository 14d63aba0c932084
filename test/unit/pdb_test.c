// A small PDB of our own: whole, cut at every byte, and with every word of it changed.
#include "pdb_sample.h"
#include "symbols/msf.h"
#include "symbols/pdb.h"
#include "test/test.h"

#include <stdio.h>

enum { CODE = 0x1000 };

static struct pdb *open_sample(struct str *bytes)
{
	struct err err = { 0 };
	struct pdb *pdb;

	sample_pdb(bytes);
	pdb = pdb_open(test_guarded_copy(bytes->text, bytes->length), bytes->length, &err);
	CHECK_STR("", err.text);
	return pdb;
}

// "function file:line < …", innermost first.
static const char *describe(struct pdb *pdb, uint32_t rva)
{
	static char text[256];
	struct places places = { 0 };
	struct str out = { 0 };

	pdb_find(pdb, rva, &places);
	for (size_t i = 0; i < places.count; i++) {
		const struct place *place = &places.items[i];

		str_format(&out, "%s%s %s:%u", i > 0 ? " < " : "",
			   place->function ? place->function : "?", place->file ? place->file : "?",
			   place->line);
	}
	snprintf(text, sizeof text, "%s", str_get(&out));
	str_fini(&out);
	places_fini(&places);
	return text;
}

// Everything that can be asked of it.
static void use(struct pdb *pdb)
{
	struct places places = { 0 };
	struct pe pe = { 0 };
	struct pe_names names;

	for (uint32_t rva = CODE; rva < CODE + 0x90; rva++) {
		places_clear(&places);
		pdb_find(pdb, rva, &places);
	}
	pe_names_init(&names, &pe);
	pdb_add_publics(pdb, &names);
	pe_names_build(&names);
	for (uint32_t rva = CODE; rva < CODE + 0x90; rva++)
		pe_names_find(&names, rva);
	pe_names_fini(&names);
	places_fini(&places);
}

TEST(a_pdb_says_which_image_it_belongs_to)
{
	struct str bytes = { 0 };
	struct pdb *pdb = open_sample(&bytes);

	CHECK_BYTES(sample_guid, pdb_guid(pdb), 16);
	CHECK_EQ(3, pdb_age(pdb)); // not the 9 of the head
	pdb_close(pdb);
	str_fini(&bytes);
}

TEST(functions_have_names_and_lines)
{
	struct str bytes = { 0 };
	struct pdb *pdb = open_sample(&bytes);

	CHECK_STR("ns::outer a.c:20", describe(pdb, CODE + 0x10));
	CHECK_STR("ns::outer a.c:20", describe(pdb, CODE + 0x13));
	CHECK_STR("ns::outer a.c:21", describe(pdb, CODE + 0x2a));
	CHECK_STR("ns::outer a.c:0", describe(pdb, CODE + 0x4f)); // a line that says: none
	CHECK_STR("", describe(pdb, CODE + 0x50));
	CHECK_STR("thunk ?:0", describe(pdb, CODE + 0x65));
	CHECK_STR("", describe(pdb, CODE + 0x66));
	pdb_close(pdb);
	str_fini(&bytes);
}

TEST(inlined_functions_stand_inside_of_each_other)
{
	struct str bytes = { 0 };
	struct pdb *pdb = open_sample(&bytes);

	CHECK_STR("scope::deep::in_scope a.c:102 < ns::outer a.c:21", describe(pdb, CODE + 0x14));
	CHECK_STR("scope::deep::in_scope a.c:102 < ns::outer a.c:21", describe(pdb, CODE + 0x17));
	CHECK_STR("box<int>::method b.h:7 < scope::deep::in_scope a.c:103 < ns::outer a.c:21",
		  describe(pdb, CODE + 0x18));
	CHECK_STR("scope::deep::in_scope a.c:103 < ns::outer a.c:21", describe(pdb, CODE + 0x1b));
	CHECK_STR("ns::outer a.c:21", describe(pdb, CODE + 0x1c));
	CHECK_STR("scope::deep::in_scope a.c:103 < ns::outer a.c:21", describe(pdb, CODE + 0x22));
	CHECK_STR("ns::outer a.c:21", describe(pdb, CODE + 0x24));
	pdb_close(pdb);
	str_fini(&bytes);
}

TEST(a_public_symbol_reaches_to_the_end_of_its_part)
{
	struct str bytes = { 0 };
	struct pdb *pdb = open_sample(&bytes);
	struct pe pe = { 0 };
	struct pe_names names;

	pe_names_init(&names, &pe);
	pdb_add_publics(pdb, &names);
	pe_names_build(&names);
	CHECK_STR("?only@public@@YAXXZ", pe_names_find(&names, CODE + 0x7f));
	CHECK_STR(NULL, pe_names_find(&names, CODE + 0x80));
	pe_names_fini(&names);
	pdb_close(pdb);
	str_fini(&bytes);
}

TEST(a_pdb_that_is_cut_anywhere_is_refused_or_read_as_far_as_it_goes)
{
	struct str bytes = { 0 };

	sample_pdb(&bytes);
	for (size_t size = 0; size < bytes.length; size++) {
		struct err err = { 0 };
		struct pdb *pdb;

		pdb = pdb_open(test_guarded_copy(bytes.text, size), size, &err);
		CHECK(pdb || *err.text);
		if (pdb)
			use(pdb);
		pdb_close(pdb);
	}
	str_fini(&bytes);
}

TEST(streams_that_are_cut_anywhere_do_no_harm)
{
	struct str bytes = { 0 };
	size_t directory, opened = 0;

	// Their sizes stand in the last block: a smaller one has fewer blocks as well.
	sample_pdb(&bytes);
	directory = bytes.length / SAMPLE_BLOCK * SAMPLE_BLOCK;
	if (directory == bytes.length)
		directory -= SAMPLE_BLOCK;
	for (size_t stream = 1; stream < SAMPLE_STREAMS; stream++) {
		uint8_t *size = (uint8_t *)bytes.text + directory + 4 + 4 * stream;
		uint32_t whole = bytes_get_u32(size);

		for (uint32_t cut = whole > SAMPLE_BLOCK ? SAMPLE_BLOCK + 1 : 1; cut < whole;
		     cut++) {
			struct err err;
			struct pdb *pdb;

			bytes_put_u32(size, cut);
			pdb = pdb_open((uint8_t *)bytes.text, bytes.length, &err);
			if (pdb)
				use(pdb);
			opened += pdb != NULL;
			pdb_close(pdb);
		}
		bytes_put_u32(size, whole);
	}
	CHECK(opened > 200);
	str_fini(&bytes);
}

TEST(words_that_lie_do_no_harm)
{
	static const uint32_t lies[] = {
		0xffffffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0x10000, 1
	};
	struct str bytes = { 0 };
	size_t opened = 0, refused = 0;

	sample_pdb(&bytes);
	for (size_t at = 32; at + 4 <= bytes.length; at += 2) {
		uint32_t before = bytes_get_u32((uint8_t *)bytes.text + at);

		if (before == 0 && at % 8 != 0)
			continue;
		for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
			struct err err = { 0 };
			struct pdb *pdb;

			bytes_put_u32((uint8_t *)bytes.text + at, lies[i]);
			pdb = pdb_open((uint8_t *)bytes.text, bytes.length, &err);
			CHECK(pdb || *err.text);
			if (pdb)
				use(pdb);
			opened += pdb != NULL;
			refused += pdb == NULL;
			pdb_close(pdb);
		}
		bytes_put_u32((uint8_t *)bytes.text + at, before);
	}
	CHECK(opened > 6000 && refused > 200);
	str_fini(&bytes);
}

TEST(a_stream_is_no_larger_than_the_file)
{
	struct str bytes = { 0 };
	struct msf_stream stream;
	struct err err;
	struct msf msf;

	sample_pdb(&bytes);
	CHECK(msf_open(&msf, (const uint8_t *)bytes.text, bytes.length, &err));
	CHECK_EQ(SAMPLE_STREAMS, msf.streams_count);
	stream = msf_read(&msf, 7); // of two blocks, the second first
	CHECK_EQ(4, bytes_get_u32(stream.bytes));
	CHECK(stream.owned != NULL);
	msf_stream_close(&stream);
	stream = msf_read(&msf, 99);
	CHECK_EQ(0, stream.size_bytes);
	msf_close(&msf);
	bytes_put_u32((uint8_t *)bytes.text + 44, UINT32_MAX);
	CHECK(!msf_open(&msf, (const uint8_t *)bytes.text, bytes.length, &err));
	str_fini(&bytes);
}
