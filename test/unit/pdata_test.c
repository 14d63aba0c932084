// What recorder/pdata.h promises: Microsoft's description of UNWIND_INFO, code by code, as rules.
#include "recorder/pdata.h"
#include "test/test.h"

#include <stdio.h>
#include <string.h>

enum { CODE = 0x1000, INFO = 0x2000, TABLE = 0x3000, IMAGE = 0x4000, RAX = 0, RBX = 3, RBP = 5 };

#define CHAINED (4 << 3)

static uint8_t image[IMAGE] __attribute__((aligned(4096)));
static uint32_t functions, infos;

static void put_32(uint32_t at, uint32_t value)
{
	memcpy(image + at, &value, 4);
}

static void begin(void)
{
	memset(image, 0, sizeof(image));
	memset(image + CODE, 0x90, INFO - CODE);
	functions = 0;
	infos = INFO;
	put_32(0x3c, 0x80);
	put_32(0x80 + 24 + 112 + 8 * 3, TABLE);
}

static uint32_t code_op(uint32_t at, uint32_t op, uint32_t about)
{
	return at | op << 8 | about << 12;
}

// One UNWIND_INFO: 16-bit places. Returns where it is.
static uint32_t put_info(uint32_t version_flags, uint32_t prolog, uint32_t frame, size_t count,
			 const uint32_t *places)
{
	uint32_t at = infos;

	image[at] = (uint8_t)version_flags;
	image[at + 1] = (uint8_t)prolog;
	image[at + 2] = (uint8_t)count;
	image[at + 3] = (uint8_t)frame;
	for (size_t i = 0; i < count; i++) {
		image[at + 4 + 2 * i] = (uint8_t)places[i];
		image[at + 5 + 2 * i] = (uint8_t)(places[i] >> 8);
	}
	infos = (uint32_t)(at + 4 + 2 * ((count + 1) & ~1ull) + 12);
	return at;
}

static uint32_t put_function(uint32_t from, uint32_t to, uint32_t info)
{
	uint32_t at = TABLE + 12 * functions++;

	put_32(at, from);
	put_32(at + 4, to);
	put_32(at + 8, info);
	put_32(0x80 + 24 + 112 + 8 * 3 + 4, 12 * functions);
	return at;
}

#define INFO_OF(version_flags, prolog, frame, ...)                       \
	put_info(version_flags, prolog, frame,                           \
		 sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
		 (uint32_t[]){ __VA_ARGS__ })

static unwind_rule rule_at(uint32_t at, bool exact)
{
	struct codemap_place place = { .module = 1, .start = (uintptr_t)image };

	place.end = place.start + IMAGE;
	place.function = pdata_find(image, place.start + at - !exact);
	return pdata_compile(&place, place.start + at, exact);
}

// A function of 64 bytes with these codes, in its middle.
#define RULE_OF(version_flags, prolog, frame, ...)                                          \
	(begin(),                                                                           \
	 put_function(CODE, CODE + 64, INFO_OF(version_flags, prolog, frame, __VA_ARGS__)), \
	 rule_at(CODE + 32, false))

static void check(unwind_rule rule, enum unwind_kind kind, int64_t cfa_offset)
{
	CHECK_EQ(kind, unwind_kind(rule));
	CHECK_EQ(cfa_offset, unwind_cfa_offset(rule));
	CHECK(!unwind_saves_rbp(rule));
}

static void check_saving(unwind_rule rule, enum unwind_kind kind, int64_t cfa_offset,
			 int64_t rbp_offset)
{
	CHECK_EQ(kind, unwind_kind(rule));
	CHECK_EQ(cfa_offset, unwind_cfa_offset(rule));
	CHECK(unwind_saves_rbp(rule));
	CHECK_EQ(rbp_offset, unwind_rbp_offset(rule));
}

TEST(pdata_undoes_pushes_and_allocations)
{
	check(RULE_OF(1, 4, 0, code_op(4, 2, 4)), UNWIND_RSP, 0x28 + 8);
	check(RULE_OF(1, 7, 0, code_op(7, 1, 0), 0x1000 / 8), UNWIND_RSP, 0x1000 + 8);
	check(RULE_OF(1, 7, 0, code_op(7, 1, 1), 0x5678 & ~7, 0x12), UNWIND_RSP, 0x125678 + 8);
	check_saving(RULE_OF(1, 6, 0, code_op(6, 2, 3), code_op(2, 0, RBX), code_op(1, 0, RBP)),
		     UNWIND_RSP, 0x20 + 16 + 8, -16);
}

TEST(pdata_finds_rbp_in_the_home_space_of_the_caller)
{
	for (uint32_t home = 0; home < 4; home++)
		check_saving(RULE_OF(1, 9, 0, code_op(9, 4, RBP), 6 + home, code_op(9, 2, 4)),
			     UNWIND_RSP, 0x28 + 8, 8 * home);
	check_saving(RULE_OF(1, 9, 0, code_op(9, 5, RBP), 0x10038, 1, code_op(9, 1, 1), 0x20, 1),
		     UNWIND_RSP, 0x10020 + 8, 0x10);
}

TEST(pdata_finds_rbp_within_the_frame_and_no_other_register_there)
{
	check_saving(RULE_OF(1, 9, 0, code_op(9, 4, RBP), 2, code_op(4, 2, 4)), UNWIND_RSP, 0x30,
		     0x10 - 0x30);
	check(RULE_OF(1, 9, 0, code_op(9, 4, RBX), 2, code_op(4, 2, 4)), UNWIND_RSP, 0x30);
	check(RULE_OF(1, 9, 0, code_op(9, 8, RBP), 2, code_op(4, 2, 4)), UNWIND_RSP, 0x30);
	check(RULE_OF(1, 9, 0, code_op(9, 9, RBP), 2, 0, code_op(4, 2, 4)), UNWIND_RSP, 0x30);
	CHECK_EQ(UNWIND_STOP, RULE_OF(1, 9, 0, code_op(9, 4, RBP), 5, code_op(4, 2, 4)));
}

TEST(pdata_counts_from_the_frame_pointer)
{
	// push rbp; sub rsp,30h; lea rbp,[rsp+20h]
	check_saving(RULE_OF(1, 10, RBP | 2 << 4, code_op(10, 3, 0), code_op(5, 2, 5),
			     code_op(1, 0, RBP)),
		     UNWIND_RBP, 0x30 - 0x20 + 16, -16);
	// gcc's: push rbp; mov rbp,rsp; sub rsp,30h
	check_saving(RULE_OF(1, 8, RBP, code_op(8, 2, 5), code_op(4, 3, 0), code_op(1, 0, RBP)),
		     UNWIND_RBP, 16, -16);
	// Home space: mov [rsp+10h],rbp; sub rsp,30h; lea rbp,[rsp+20h]
	check_saving(RULE_OF(1, 14, RBP | 2 << 4, code_op(14, 3, 0), code_op(9, 4, RBP), 8,
			     code_op(9, 2, 5)),
		     UNWIND_RBP, 0x30 - 0x20 + 8, 8);
	CHECK_EQ(UNWIND_STOP, RULE_OF(1, 8, RBX, code_op(4, 3, 0), code_op(1, 0, RBX)));
}

TEST(pdata_undoes_what_of_a_prologue_has_run)
{
	begin();
	put_function(CODE, CODE + 64,
		     INFO_OF(1, 14, RBP | 2 << 4, code_op(14, 3, 0), code_op(9, 4, RBP), 8,
			     code_op(9, 2, 5)));
	check(rule_at(CODE, true), UNWIND_RSP, 8);
	check(rule_at(CODE + 8, true), UNWIND_RSP, 8);
	// Stored, and the frame pointer is not set yet.
	check_saving(rule_at(CODE + 9, true), UNWIND_RSP, 0x38, 0x40 - 0x38);
	check_saving(rule_at(CODE + 14, true), UNWIND_RBP, 0x18, 8);
	// A call in the prologue, of what touches a large frame's pages.
	check(rule_at(CODE + 8, false), UNWIND_RSP, 8);
}

TEST(pdata_follows_what_a_part_is_chained_to)
{
	uint32_t child;

	begin();
	put_function(CODE, CODE + 16, INFO_OF(1, 5, 0, code_op(5, 2, 4), code_op(1, 0, RBP)));
	child = INFO_OF(1 | CHAINED, 5, 0, code_op(5, 4, RBX), 1);
	memcpy(image + child + 8, image + TABLE, 12);
	put_function(CODE + 16, CODE + 64, child);
	check_saving(rule_at(CODE + 32, false), UNWIND_RSP, 0x28 + 16, -16);
	// Of what it continues, all has run, even where its own first bytes have not.
	check_saving(rule_at(CODE + 17, true), UNWIND_RSP, 0x28 + 16, -16);
	// An entry that stands for another one.
	put_function(CODE + 64, CODE + 96, TABLE | 1);
	check_saving(rule_at(CODE + 80, false), UNWIND_RSP, 0x28 + 16, -16);
}

TEST(pdata_knows_machine_frames)
{
	check(RULE_OF(1, 0, 0, code_op(0, 10, 0)), UNWIND_MACHINE, 8);
	check(RULE_OF(1, 0, 0, code_op(0, 10, 1)), UNWIND_MACHINE, 16);
	check_saving(RULE_OF(1, 0, 0, code_op(0, 4, RBP), 0xa0 / 8, code_op(0, 1, 0), 0x590 / 8,
			     code_op(0, 10, 0)),
		     UNWIND_MACHINE, 0x598, 0xa0 - 0x598);
	CHECK_EQ(UNWIND_STOP, RULE_OF(1, 0, 0, code_op(0, 10, 0), code_op(0, 2, 1)));
}

TEST(pdata_passes_codes_that_are_about_no_register_of_ours)
{
	// Version 1's 6 and 7 are stores of older compilers, of two and three places.
	check(RULE_OF(1, 4, 0, code_op(4, 6, 6), 0x0b0b, code_op(4, 2, 4)), UNWIND_RSP, 0x30);
	check(RULE_OF(1, 4, 0, code_op(4, 7, 6), 0x0b0b, 0x0b0b, code_op(4, 2, 4)), UNWIND_RSP,
	      0x30);
	check(RULE_OF(2, 4, 0, code_op(5, 6, 1), code_op(0, 6, 0), code_op(4, 2, 4)), UNWIND_RSP,
	      0x30);
	CHECK_EQ(UNWIND_STOP, RULE_OF(1, 4, 0, code_op(4, 11, 0)));
	CHECK_EQ(UNWIND_STOP, RULE_OF(3, 4, 0, code_op(4, 2, 4)));
	CHECK_EQ(UNWIND_STOP, RULE_OF(0, 4, 0, code_op(4, 2, 4)));
}

TEST(pdata_takes_code_without_an_entry_for_a_leaf_only_where_it_was_interrupted)
{
	begin();
	CHECK_EQ(UNWIND_GUESS_BLIND, rule_at(CODE + 32, true));
	CHECK_EQ(UNWIND_GUESS_BLIND, rule_at(CODE + 32, false));
	put_function(CODE, CODE + 16, INFO_OF(1, 0, 0, code_op(0, 2, 0)));
	check(rule_at(CODE + 32, true), UNWIND_RSP, 8);
	CHECK_EQ(UNWIND_STOP, rule_at(CODE + 32, false));
}

// Code at the end of a function of 64 bytes that allocates 20h and has pushed rbx and rbp.
static unwind_rule epilog_rule(uint32_t version, const char *hex, uint32_t behind)
{
	uint8_t code[32];
	size_t size = 0;
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += hex[2] ? 3 : 2)
		code[size++] = (uint8_t)byte;
	begin();
	if (version == 1)
		put_function(CODE, CODE + 64,
			     INFO_OF(1, 6, RBP, code_op(6, 2, 3), code_op(2, 0, RBX),
				     code_op(1, 0, RBP)));
	else // an epilogue of 3 bytes at the end, another one 8 bytes before it
		put_function(CODE, CODE + 64,
			     INFO_OF(2, 6, 0, code_op(3, 6, 1), code_op(8, 6, 0), code_op(6, 2, 3),
				     code_op(2, 0, RBX), code_op(1, 0, RBP)));
	memcpy(image + CODE + 64 - size, code, size);
	return rule_at(CODE + 64 - (uint32_t)size + behind, true);
}

TEST(pdata_knows_epilogues_by_their_instructions)
{
	const char *plain = "48 83 c4 20 5b 5d c3";

	check_saving(epilog_rule(1, plain, 0), UNWIND_RSP, 0x20 + 16 + 8, -16);
	check_saving(epilog_rule(1, plain, 4), UNWIND_RSP, 16 + 8, -16);
	check_saving(epilog_rule(1, plain, 5), UNWIND_RSP, 16, -16);
	check(epilog_rule(1, plain, 6), UNWIND_RSP, 8);
	check(epilog_rule(1, "f3 c3", 0), UNWIND_RSP, 8);
	check(epilog_rule(1, "48 c3", 0), UNWIND_RSP, 8);
	CHECK_EQ(UNWIND_STOP, epilog_rule(1, "c2 08 00", 0)); // drops more: no rule says that
	check(epilog_rule(1, "41 5d c3", 0), UNWIND_RSP, 16); // pop r13
	check_saving(epilog_rule(1, "48 8d 65 10 5d c3", 0), UNWIND_RBP, 0x10 + 16, -16);
	check(epilog_rule(1, "48 ff e0", 0), UNWIND_RSP, 8);
	check(epilog_rule(1, "ff 25 00 00 00 00", 0), UNWIND_RSP, 8);
	check(epilog_rule(1, "e9 00 00 00 00", 0), UNWIND_RSP, 8); // to behind the function
	// No epilogues: a jump within the function, a call, an instruction that is cut off.
	check_saving(epilog_rule(1, "eb f0", 0), UNWIND_RSP, 0x20 + 16 + 8, -16);
	check_saving(epilog_rule(1, "e8 00 00 00 00", 0), UNWIND_RSP, 0x20 + 16 + 8, -16);
	check_saving(epilog_rule(1, "48 81 c4 20", 0), UNWIND_RSP, 0x20 + 16 + 8, -16);
	// Two that share their end.
	check_saving(epilog_rule(1, "5b eb 01 cc 5d c3", 0), UNWIND_RSP, 16 + 8, -16);
	// A jump to its own beginning is a call of itself.
	check(epilog_rule(1, "e9 c0 ff ff ff", 0), UNWIND_RSP, 8);
}

// Microsoft's compilers store registers late, behind what returns if there is nothing to do.
TEST(pdata_knows_an_epilogue_among_the_bytes_of_the_prologue)
{
	const uint8_t early[] = { 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3 };

	begin();
	put_function(CODE, CODE + 64,
		     INFO_OF(1, 40, 0, code_op(40, 4, RBP), 7, code_op(6, 2, 3),
			     code_op(2, 0, RBX)));
	memcpy(image + CODE + 16, early, sizeof(early));
	check(rule_at(CODE + 15, true), UNWIND_RSP, 0x20 + 16);
	check(rule_at(CODE + 16, true), UNWIND_RSP, 0x20 + 16);
	check(rule_at(CODE + 20, true), UNWIND_RSP, 16);
	check(rule_at(CODE + 21, true), UNWIND_RSP, 8);
	check_saving(rule_at(CODE + 41, true), UNWIND_RSP, 0x20 + 16, 0x38 - 0x30);
}

TEST(pdata_looks_for_no_epilogue_where_nothing_is_to_be_undone)
{
	begin();
	put_function(CODE, CODE + 64, put_info(1, 0, 0, 0, NULL));
	memcpy(image + CODE + 16, (uint8_t[]){ 0x48, 0x83, 0xc4, 0x20, 0xc3 }, 5);
	check(rule_at(CODE + 16, true), UNWIND_RSP, 8);
}

TEST(pdata_knows_epilogues_by_the_codes_of_version_2)
{
	const char *two = "5b 5d c3 cc cc 5b 5d c3";

	check_saving(epilog_rule(2, two, 0), UNWIND_RSP, 16 + 8, -16);
	check_saving(epilog_rule(2, two, 1), UNWIND_RSP, 16, -16);
	check(epilog_rule(2, two, 2), UNWIND_RSP, 8);
	check_saving(epilog_rule(2, two, 5), UNWIND_RSP, 16 + 8, -16);
	check(epilog_rule(2, two, 7), UNWIND_RSP, 8);
	// What is not told of is none, whatever it looks like.
	check_saving(epilog_rule(2, "5b 5d c3 cc cc cc cc cc cc cc cc", 0), UNWIND_RSP,
		     0x20 + 16 + 8, -16);
	CHECK_EQ(UNWIND_STOP, epilog_rule(2, "90 90 90", 0));
}

TEST(pdata_finds_the_entry_that_holds_an_address)
{
	begin();
	for (uint32_t i = 0; i < 9; i++)
		put_function(CODE + 32 * i, CODE + 32 * i + 24, INFO_OF(1, 0, 0, code_op(0, 2, i)));
	for (uint32_t i = 0; i < 9; i++) {
		check(rule_at(CODE + 32 * i, true), UNWIND_RSP, 8 + 8 + 8 * i);
		check(rule_at(CODE + 32 * i + 24, false), UNWIND_RSP, 8 + 8 + 8 * i);
		CHECK_EQ(UNWIND_STOP, rule_at(CODE + 32 * i + 30, false));
	}
}

// ---- Tables of generated code ----

static uintptr_t readable_from, readable_to;

static bool can_read(uintptr_t from, size_t bytes)
{
	return from >= readable_from && from + bytes <= readable_to;
}

// Three functions that are not in order, by a table without an image.
static const struct pdata_function *put_generated(void)
{
	uint32_t info;

	begin();
	put_32(0x3c, 0); // no headers
	info = INFO_OF(1, 4, 0, code_op(4, 2, 4));
	put_function(CODE + 128, CODE + 192, info);
	put_function(CODE, CODE + 64, info);
	put_function(CODE + 64, CODE + 100, info);
	return (const void *)(image + TABLE);
}

TEST(pdata_finds_functions_of_tables_that_are_in_no_order)
{
	const struct pdata_function *table = put_generated();
	uintptr_t start, end;

	CHECK(!pdata_extent(table, 3, (uintptr_t)image, &start, &end));
	CHECK_EQ((uintptr_t)image + CODE, start);
	CHECK_EQ((uintptr_t)image + CODE + 192, end);
	CHECK(pdata_extent((const void *)((const uint8_t *)table + PDATA_FUNCTION_BYTES), 2,
			   (uintptr_t)image, &start, &end));
	CHECK_EQ((uintptr_t)image + CODE + 100, end);
	for (uint32_t at = CODE; at < CODE + 200; at++) {
		const struct pdata_function *found = pdata_search(table, 3, false, at);

		CHECK_EQ((at >= CODE + 100 && at < CODE + 128) || at >= CODE + 192, !found);
		if (found)
			CHECK(pdata_end((uintptr_t)image, found) > (uintptr_t)image + at);
	}
}

TEST(pdata_compiles_generated_code_that_has_no_image)
{
	struct codemap_place place = { .start = (uintptr_t)image, .generated = true };

	place.function = pdata_search(put_generated(), 3, false, CODE + 32);
	place.end = pdata_end(place.start, place.function);
	check(pdata_compile(&place, place.start + CODE + 32, false), UNWIND_RSP, 0x28 + 8);
	// ret; a jump out of it; a jump within it.
	image[CODE + 32] = 0xc3;
	check(pdata_compile(&place, place.start + CODE + 32, true), UNWIND_RSP, 8);
	image[CODE + 32] = 0xeb;
	image[CODE + 33] = 100;
	check(pdata_compile(&place, place.start + CODE + 32, true), UNWIND_RSP, 8);
	image[CODE + 33] = 4;
	check(pdata_compile(&place, place.start + CODE + 32, true), UNWIND_RSP, 0x28 + 8);
}

TEST(pdata_asks_before_it_reads_what_a_program_made)
{
	const struct pdata_function *function;
	uint32_t info, chained;

	begin();
	info = INFO_OF(1, 4, 0, code_op(4, 2, 4), 0, 0);
	chained = INFO_OF(1 | CHAINED, 0, 0, 0, 0);
	put_32(chained + 8, CODE);
	put_32(chained + 12, CODE + 64);
	put_32(chained + 16, info);
	function = (const void *)(image + put_function(CODE + 64, CODE + 128, chained));
	readable_from = (uintptr_t)image;
	for (uint32_t to = INFO; to < TABLE + 12; to++) {
		readable_to = readable_from + to;
		CHECK(!pdata_is_readable((uintptr_t)image, function, can_read));
	}
	readable_to = readable_from + TABLE + 12;
	CHECK(pdata_is_readable((uintptr_t)image, function, can_read));
	readable_from += info + 1;
	CHECK(!pdata_is_readable((uintptr_t)image, function, can_read));
	readable_from = (uintptr_t)image;
	put_32(chained + 16, chained); // chained to itself for ever
	CHECK(!pdata_is_readable((uintptr_t)image, function, can_read));
}

// What was called by code without an entry, between two functions that have one.
static unwind_rule rule_of_code(const uint8_t *code, size_t size)
{
	begin();
	put_function(CODE, CODE + 30, INFO_OF(1, 4, 0, code_op(4, 2, 4)));
	put_function(CODE + 256, CODE + 300, INFO_OF(1, 4, 0, code_op(4, 2, 4)));
	memcpy(image + CODE + 32, code, size);
	return rule_at(CODE + 32 + (uint32_t)size, false);
}

#define RULE_OF_CODE(...) \
	rule_of_code((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

TEST(pdata_reads_code_that_has_no_entry)
{
	// push rbp; mov rbp,rsp; push rsi; sub rsp,n; call r9
	check_saving(RULE_OF_CODE(0x55, 0x48, 0x8b, 0xec, 0x56, 0x48, 0x81, 0xec, 0xa0, 0, 0, 0,
				  0x41, 0xff, 0xd1),
		     UNWIND_RBP, 16, -16);
	check_saving(RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0xff, 0xd0), UNWIND_RBP, 16, -16);
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x56, 0x48, 0x8b, 0xec, 0xff, 0xd0));
	// It is left before: pop rbp; ret; or changed: mov ebp,1; mov rbp,rax; lea rbp,[rax]
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0x5d, 0xff, 0xd0));
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0xc3, 0xff, 0xd0));
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0xbd, 1, 0, 0, 0, 0xff, 0xd0));
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xc5, 0xff, 0xd0));
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x28, 0xff, 0xd0));
	// r13 is another register, and within an instruction is no place to return to.
	check_saving(RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0x49, 0x89, 0xc5, 0xff, 0xd0), UNWIND_RBP,
		     16, -16);
	CHECK_EQ(UNWIND_STOP, RULE_OF_CODE(0x55, 0x48, 0x89, 0xe5, 0xb8, 0xff, 0xd0));
}
