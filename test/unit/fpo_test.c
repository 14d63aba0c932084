// What recorder/fpo.h promises: a small PDB of our own, whole, cut at every byte, and with every
// byte of it changed; and programs as Microsoft's and LLVM's compilers write them.
#include "pdb_sample.h"
#include "recorder/fpo.h"
#include "test/test.h"

#include <stdlib.h>

enum { CODE = 0x1000, IMAGE = 0x2000 };

struct pdb_bytes {
	const uint8_t *at;
	size_t count;
};

static size_t taken; // bytes that were not given back

static bool read_at(void *context, uint64_t at, void *out, size_t count)
{
	const struct pdb_bytes *bytes = context;

	if (at > bytes->count || count > bytes->count - at)
		return false;
	memcpy(out, bytes->at + at, count);
	return true;
}

static void *take(size_t count)
{
	taken += count;
	return malloc(count);
}

static void give_back(void *pages, size_t count)
{
	taken -= count;
	free(pages);
}

static struct fpo_table *read_bytes(const uint8_t *at, size_t count, const uint8_t id[20])
{
	struct pdb_bytes bytes = { at, count };
	struct fpo_file file = { &bytes, count, read_at, take, give_back };

	return fpo_read(&file, id, IMAGE);
}

static void sample_id(uint8_t id[20])
{
	memcpy(id, sample_guid, 16);
	memcpy(id + 16, "\3\0\0\0", 4);
}

static void use(struct fpo_table *table)
{
	for (uint32_t rva = CODE; table && rva < CODE + 0x90; rva++)
		fpo_find(table, rva);
	if (table)
		give_back(table, table->bytes);
	CHECK_EQ(0, taken);
}

TEST(the_last_step_of_a_prologue_is_the_frame_of_the_function)
{
	struct str bytes = { 0 };
	struct fpo_table *table;
	const struct fpo_row *row;
	uint8_t id[20];

	sample_pdb(&bytes);
	sample_id(id);
	table = read_bytes((const uint8_t *)bytes.text, bytes.length, id);
	CHECK(table != NULL);
	CHECK_EQ(3, table->count);
	CHECK(fpo_find(table, CODE + 0x13) == NULL);
	row = fpo_find(table, CODE + 0x14);
	CHECK(row && fpo_find(table, CODE + 0x4f) == row);
	CHECK_EQ(CODE + 0x10, row->function);
	CHECK_EQ(FPO_SEARCH, row->kind);
	CHECK_EQ(28, row->frame);
	CHECK_EQ(-3, row->kept_at);
	CHECK_EQ(8, row->arguments);
	CHECK(fpo_find(table, CODE + 0x50) == NULL);
	use(table);
	str_fini(&bytes);
}

TEST(records_of_the_old_form_have_sizes_alone)
{
	struct str bytes = { 0 };
	struct fpo_table *table;
	const struct fpo_row *row;
	uint8_t id[20];

	sample_pdb(&bytes);
	sample_id(id);
	table = read_bytes((const uint8_t *)bytes.text, bytes.length, id);
	row = fpo_find(table, CODE + 0x62);
	CHECK(row && row->keeps_somewhere);
	CHECK_EQ(FPO_SEARCH, row->kind);
	CHECK_EQ(28, row->frame);
	CHECK_EQ(12, row->arguments);
	row = fpo_find(table, CODE + 0x70);
	CHECK(row != NULL);
	CHECK_EQ(FPO_BY_EBP, row->kind);
	CHECK_EQ(8, row->frame);
	CHECK_EQ(-2, row->kept_at);
	use(table);
	str_fini(&bytes);
}

TEST(the_pdb_of_another_build_is_not_used)
{
	struct str bytes = { 0 };
	uint8_t id[20];

	sample_pdb(&bytes);
	for (int i = 0; i < 20; i++) {
		sample_id(id);
		id[i] ^= 1;
		CHECK(read_bytes((const uint8_t *)bytes.text, bytes.length, id) == NULL);
		CHECK_EQ(0, taken);
	}
	str_fini(&bytes);
}

TEST(a_pdb_may_be_cut_or_changed_anywhere)
{
	struct str bytes = { 0 };
	uint8_t id[20];

	sample_pdb(&bytes);
	sample_id(id);
	for (size_t count = 0; count < bytes.length; count++) {
		uint8_t *copy = test_guarded_copy(bytes.text, count);

		use(read_bytes(copy, count, id));
	}
	for (size_t at = 0; at < bytes.length; at++) {
		for (int bit = 0; bit < 8; bit += 7) {
			bytes.text[at] = (char)(bytes.text[at] ^ 1 << bit);
			use(read_bytes((const uint8_t *)bytes.text, bytes.length, id));
			bytes.text[at] = (char)(bytes.text[at] ^ 1 << bit);
		}
	}
	str_fini(&bytes);
}

static struct fpo_row program(const char *text)
{
	struct fpo_row row = { 0 };

	if (!fpo_program(text, strlen(text), &row))
		row.function = 1;
	return row;
}

TEST(programs_say_where_the_return_address_and_ebp_are)
{
	struct fpo_row row;

	row = program("$T0 $ebp = $eip $T0 4 + ^ = $ebp $T0 ^ = $esp $T0 8 + =");
	CHECK_EQ(0, row.function);
	CHECK_EQ(FPO_BY_EBP, row.kind);
	CHECK_EQ(8, row.frame);
	CHECK_EQ(-2, row.kept_at);
	row = program("$T1 .raSearch = $T0 $T1 4 - 8 @ = $ebp $T1 4 - ^ = $eip $T1 ^ = "
		      "$esp $T1 4 + = $20 $T0 56 - ^ =");
	CHECK_EQ(0, row.function);
	CHECK_EQ(FPO_SEARCH, row.kind);
	CHECK_EQ(-2, row.kept_at);
	row = program("$T1 $ebp 4 + = $T0 $T1 12 - 16 @ = $eip $T1 ^ = $esp $T1 4 + = "
		      "$ebp $T1 4 - ^ = $esi $T1 12 - ^ = ");
	CHECK_EQ(0, row.function);
	CHECK_EQ(FPO_BY_EBP, row.kind);
	CHECK_EQ(8, row.frame);
	CHECK_EQ(-2, row.kept_at);
	row = program("$T0 .raSearchStart = $eip $T0 ^ = $esp $T0 4 + =");
	CHECK_EQ(0, row.function);
	CHECK_EQ(0, row.kept_at);
}

TEST(what_is_no_program_says_nothing)
{
	static const char *const texts[] = {
		"",
		"=",
		"^",
		"+ + +",
		"$eip",
		"$eip 4 =",
		"$eip $ebx ^ =",
		"$eip $T0 ^ =",
		"$T0 .raSearch = $eip $T0 = ",
		"$T0 .raSearch = $eip $T0 ^ ^ =",
		"$T0 .raSearch = $eip $T0 ^ = $ebp $esi =",
		"$T0 $ebp = $eip $T0 4 + ^ =", // where the caller's ebp is, is not said
		"$T0 .raSearch = $eip $T0 99999999999 + ^ =",
		"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19",
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK_EQ(1, program(texts[i]).function);
}
