// Line tables written by hand, byte by byte, and broken ones.
#include "symbols/linetable.h"
#include "test/test.h"

#include <string.h>

// A table of version 5: code at 0x1000 with lines 10, 12 (twice) and 7 in another file, up to
// 0x1020; then a sequence of its own at 0x2000.
static const uint8_t table_5[] = {
	0x51, 0,    0,    0, // length of what follows
	5,    0,             // version
	8,    0,             // bytes of an address, of a segment selector
	15,   0,    0,    0, // length of the rest of the head
	1,    1,    1,  // least length of an instruction, operations in one, statements by default
	0xfb, 14,   10, // line base -5, line range 14, opcode base 10
	0,    1,    1,    1,    1,    0, 0, 0, 1,       // arguments of the standard opcodes 1 to 9
	0,    9,    2,    0x00, 0x10, 0, 0, 0, 0, 0, 0, // set address 0x1000
	3,    9,    1,                                  // line + 9, row: 0x1000 is line 10
	0x81,                      // special: (0x81 - 10) = 119 = 8 * 14 + 7: address + 8, line + 2
	5,    3,                   // column
	1,                         // row: the same address again
	4,    2,                   // file 2
	3,    0x7b,                // line - 5
	2,    8,    1,             // address + 8, row: 0x1010 is line 7 of file 2
	2,    16,   0,    1,    1, // address + 16, end of sequence at 0x1020
	0,    9,    2,    0x00, 0x20, 0, 0, 0, 0, 0, 0, // set address 0x2000
	1,                                              // row: line 1
	8,                                              // const add pc: (255 - 10) / 14 = 17
	3,    0xe4, 0x00,                               // line + 100
	1,                                              // row at 0x2011: line 101
	9,    0x05, 0,                                  // fixed advance, 5
	0,    3,    0x80, 1,    2,                      // an extended opcode that nobody knows
	0,    1,    1,                                  // end at 0x2016
};

static struct linetable_source source_of(const uint8_t *bytes, size_t size)
{
	return (struct linetable_source){
		.bytes = bytes,
		.size_bytes = size,
		.address_bytes = 8,
		.code_start = 0x1000,
		.code_end = 0x3000,
	};
}

static void check_row(const struct linetable *table, uint64_t address, uint32_t file, uint32_t line)
{
	uint32_t found_file = 0, found_line = 0;

	CHECK(linetable_find(table, address, &found_file, &found_line));
	CHECK_EQ(file, found_file);
	CHECK_EQ(line, found_line);
}

static bool has_row(const struct linetable *table, uint64_t address)
{
	uint32_t file, line;

	return linetable_find(table, address, &file, &line);
}

TEST(the_table_by_hand_says_what_was_written)
{
	struct linetable_source source = source_of(table_5, sizeof table_5);
	struct linetable table;

	CHECK_EQ(sizeof table_5 - 4, table_5[0]);
	linetable_read(&table, &source, 0);
	CHECK(!has_row(&table, 0xfff));
	check_row(&table, 0x1000, 1, 10);
	check_row(&table, 0x1007, 1, 10);
	check_row(&table, 0x1008, 1, 12);
	check_row(&table, 0x100f, 1, 12);
	check_row(&table, 0x1010, 2, 7);
	check_row(&table, 0x101f, 2, 7);
	CHECK(!has_row(&table, 0x1020));
	CHECK(!has_row(&table, 0x1fff));
	check_row(&table, 0x2000, 1, 1);
	check_row(&table, 0x2010, 1, 1);
	check_row(&table, 0x2011, 1, 101);
	check_row(&table, 0x2015, 1, 101);
	CHECK(!has_row(&table, 0x2016));
	linetable_fini(&table);
}

TEST(a_sequence_outside_the_code_is_dropped)
{
	struct linetable_source source = source_of(table_5, sizeof table_5);
	struct linetable table;

	source.code_start = 0x1800;
	linetable_read(&table, &source, 0);
	CHECK(!has_row(&table, 0x1000));
	check_row(&table, 0x2000, 1, 1);
	linetable_fini(&table);
}

TEST(a_row_of_no_length_at_the_end_of_a_sequence_covers_nothing)
{
	// Row at the address where the sequence ends, then nothing up to 0x2000.
	uint8_t bytes[sizeof table_5];
	struct linetable_source source = source_of(bytes, sizeof bytes);
	struct linetable table;

	memcpy(bytes, table_5, sizeof bytes);
	bytes[50] = 24; // "address + 8, row" becomes "address + 24, row": 0x1020
	bytes[53] = 0;  // and the end comes at the same address
	linetable_read(&table, &source, 0);
	CHECK(has_row(&table, 0x1000));
	for (uint64_t at = 0x1020; at < 0x2000; at++)
		CHECK(!has_row(&table, at));
	linetable_fini(&table);
}

TEST(a_cut_table_is_read_up_to_its_last_whole_sequence_at_most)
{
	for (size_t size = 0; size <= sizeof table_5; size++) {
		const uint8_t *bytes = test_guarded_copy(table_5, size);
		struct linetable_source source = source_of(bytes, size);
		struct linetable table;

		linetable_read(&table, &source, 0);
		CHECK_EQ(size == sizeof table_5, has_row(&table, 0x1000));
		linetable_fini(&table);
	}
}

TEST(any_byte_changed_to_any_value_does_no_harm)
{
	size_t asked = 0, first = 0, second = 0;

	for (size_t at = 0; at < sizeof table_5; at++) {
		for (int value = 0; value < 256; value += at < 32 ? 1 : 15) {
			uint8_t bytes[sizeof table_5];
			struct linetable_source source;
			struct linetable table;

			memcpy(bytes, table_5, sizeof bytes);
			bytes[at] = (uint8_t)value;
			source = source_of(bytes, sizeof bytes);
			linetable_read(&table, &source, 0);
			asked++;
			first += has_row(&table, 0x1004);
			second += has_row(&table, 0x2012);
			CHECK(!has_row(&table, 0xfff));
			linetable_fini(&table);
		}
	}
	CHECK(first > asked / 2 && first < asked);
	CHECK(second > asked / 2 && second < asked);
}

TEST(an_offset_outside_the_section_is_an_empty_table)
{
	struct linetable_source source = source_of(table_5, sizeof table_5);
	struct linetable table;

	linetable_read(&table, &source, sizeof table_5);
	CHECK(!has_row(&table, 0x1000));
	linetable_fini(&table);
	linetable_read(&table, &source, UINT64_MAX);
	CHECK(!has_row(&table, 0x1000));
	linetable_fini(&table);
}
