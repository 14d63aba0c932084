// What recorder/insn.h promises: the length of every instruction, as an independent decoder has it.
#include "recorder/insn.h"
#include "test/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_ZYDIS
#include <Zydis/Zydis.h>
#include <glob.h>
#endif

static unsigned length_of(const char *hex, bool wide)
{
	uint8_t code[32] = { 0 };
	size_t size = 0;
	struct insn insn;
	unsigned byte;

	for (; sscanf(hex, " %2x", &byte) == 1; hex += hex[0] == ' ' ? 3 : 2)
		code[size++] = (uint8_t)byte;
	return insn_decode(test_guarded_copy(code, size), size, wide, &insn) ? insn.length : 0;
}

TEST(insn_knows_what_functions_of_windows_begin_with)
{
	CHECK_EQ(3, length_of("4c 8b d1", true));                // mov r10,rcx
	CHECK_EQ(5, length_of("b8 18 00 00 00", true));          // mov eax,18h
	CHECK_EQ(8, length_of("f6 04 25 08 03 fe 7f 01", true)); // test byte [7ffe0308h],1
	CHECK_EQ(2, length_of("0f 05", true));                   // syscall
	CHECK_EQ(5, length_of("48 89 5c 24 08", true));          // mov [rsp+8],rbx
	CHECK_EQ(8, length_of("48 8d a4 24 00 00 00 00", true)); // lea rsp,[rsp+0]
	CHECK_EQ(2, length_of("41 57", true));                   // push r15
	CHECK_EQ(10, length_of("48 b8 01 02 03 04 05 06 07 08", true));
	CHECK_EQ(2, length_of("8b ff", false)); // mov edi,edi
	CHECK_EQ(4, length_of("8d 4c 24 04", false));
	CHECK_EQ(5, length_of("ba 50 91 4a 77", false));
	CHECK_EQ(6, length_of("64 a1 18 00 00 00", false)); // mov eax,fs:[18h]
}

TEST(insn_tells_what_depends_on_its_place)
{
	const uint8_t load[] = { 0x48, 0x8b, 0x05, 1, 2, 3, 4 };
	const uint8_t branch[] = { 0x0f, 0x84, 1, 2, 3, 4 };
	const uint8_t test[] = { 0xf6, 0x05, 1, 2, 3, 4, 9 };
	const uint8_t jump[] = { 0xeb, 0x10 };
	struct insn insn;

	CHECK(insn_decode(load, sizeof load, true, &insn));
	CHECK_EQ(3, insn.rip_at);
	CHECK(insn_decode(load + 1, sizeof load - 1, false, &insn));
	CHECK_EQ(0, insn.rip_at);
	CHECK(insn_decode(test, sizeof test, true, &insn));
	CHECK_EQ(2, insn.rip_at);
	CHECK_EQ(7, insn.length);
	CHECK(insn_decode(branch, sizeof branch, true, &insn));
	CHECK_EQ(2, insn.relative_at);
	CHECK_EQ(4, insn.relative_bytes);
	CHECK(insn_decode(jump, sizeof jump, true, &insn));
	CHECK_EQ(1, insn.relative_at);
	CHECK_EQ(1, insn.relative_bytes);
}

TEST(insn_refuses_what_is_cut_and_what_is_none)
{
	CHECK_EQ(0, length_of("48", true));
	CHECK_EQ(0, length_of("48 8b", true));
	CHECK_EQ(0, length_of("48 8b 05 01 02 03", true));
	CHECK_EQ(0, length_of("e8 01 02 03", true));
	CHECK_EQ(0, length_of("06", true)); // push es
	CHECK_EQ(1, length_of("06", false));
	CHECK_EQ(0, length_of("0f 04", true));
	CHECK_EQ(0, length_of("66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", true));
}

#ifdef WITH_ZYDIS

struct tally {
	uint64_t instructions, unknown, differ;
};

// Hold one instruction against the other decoder. Returns how far to go on.
static size_t compare(const ZydisDecoder *zydis, const uint8_t *code, size_t size, bool wide,
		      struct tally *tally)
{
	ZydisDecodedInstruction theirs;
	struct insn ours;
	bool decoded;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(zydis, NULL, code, size, &theirs)))
		return 1;
	tally->instructions++;
	decoded = insn_decode(code, size, wide, &ours);
	if (!decoded) {
		tally->unknown++;
	} else {
		bool relative = theirs.raw.imm[0].is_relative;
		bool rip = theirs.raw.disp.size == 32 && wide && theirs.raw.modrm.mod == 0 &&
			   theirs.raw.modrm.rm == 5 && (theirs.attributes & ZYDIS_ATTRIB_HAS_MODRM);

		if (ours.length != theirs.length || (ours.rip_at != 0) != rip ||
		    (rip && ours.rip_at != theirs.raw.disp.offset) ||
		    (ours.relative_at != 0 && ours.relative_at != theirs.raw.imm[0].offset) ||
		    (relative && ours.relative_at == 0 && code[ours.opcode_at] != 0xc7)) {
			if (tally->differ++ < 10) {
				fprintf(stderr, "wide %d theirs %u ours %u:", wide, theirs.length,
					ours.length);
				for (int i = 0; i < theirs.length; i++)
					fprintf(stderr, " %02x", code[i]);
				fprintf(stderr, "\n");
			}
		}
	}
	return theirs.length;
}

static void start(ZydisDecoder *zydis, bool wide)
{
	ZydisDecoderInit(zydis, wide ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
			 wide ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
}

static void sweep(const uint8_t *code, size_t size, bool wide, struct tally *tally)
{
	ZydisDecoder zydis;

	start(&zydis, wide);
	for (size_t at = 0; at < size;)
		at += compare(&zydis, code + at, size - at, wide, tally);
}

// Whatever the bytes: it says the same, or refuses.
TEST(insn_agrees_on_random_bytes)
{
	enum { BYTES = 4 << 20 };
	uint8_t *code = malloc(BYTES);
	uint64_t state = 88172645463325252ull;

	for (size_t i = 0; i < BYTES; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		code[i] = (uint8_t)(state >> 24);
	}
	for (int wide = 0; wide < 2; wide++) {
		struct tally tally = { 0 };

		sweep(code, BYTES, wide, &tally);
		printf("# %s: %llu instructions, %llu unknown to us\n", wide ? "64 bit" : "32 bit",
		       (unsigned long long)tally.instructions, (unsigned long long)tally.unknown);
		CHECK(tally.instructions > BYTES / 10);
		CHECK_EQ(0, tally.differ);
	}
	free(code);
}

// All executable sections of a PE file. False: it is none.
static bool sweep_file(const char *path, struct tally tally[2])
{
	FILE *file = fopen(path, "rb");
	size_t size = 0, headers, sections;
	uint32_t at = 0;
	uint8_t *image;

	if (!file)
		return false;
	fseek(file, 0, SEEK_END);
	size = (size_t)ftell(file);
	rewind(file);
	image = calloc(1, size + 4096);
	size = fread(image, 1, size, file);
	fclose(file);
	if (size > 4096)
		memcpy(&at, image + 60, 4);
	if (size <= 4096 || memcmp(image, "MZ", 2) != 0 || at > size - 512 ||
	    memcmp(image + at, "PE\0\0", 4) != 0) {
		free(image);
		return false;
	}
	sections = image[at + 6];
	headers = at + 24 + image[at + 20] + 256u * image[at + 21];
	for (size_t i = 0; i < sections && headers + 40 * (i + 1) <= size; i++) {
		const uint8_t *section = image + headers + 40 * i;
		bool wide = image[at + 4] == 0x64;
		uint32_t length, offset, flags;

		memcpy(&length, section + 16, 4);
		memcpy(&offset, section + 20, 4);
		memcpy(&flags, section + 36, 4);
		if ((flags & 0x20000000) && offset <= size && length <= size - offset)
			sweep(image + offset, length, wide, &tally[wide]);
	}
	free(image);
	return true;
}

// Where the tests' Wine is: one line of what the tool says. Empty: nowhere.
static void find_wine(char *home, size_t size)
{
	char command[512];
	FILE *said;

	snprintf(command, sizeof command, "%s --where 2>/dev/null",
		 test_source_path("tools/wine-set-up"));
	said = popen(command, "r");
	home[0] = 0;
	if (!said)
		return;
	if (!fgets(home, (int)size, said))
		home[0] = 0;
	home[strcspn(home, "\n")] = 0;
	pclose(said);
}

// Every instruction of every DLL and program of Wine has the same length, and none is unknown.
TEST(insn_agrees_on_all_code_of_wine)
{
	struct tally tally[2] = { { 0 }, { 0 } };
	size_t files = 0;
	char home[256], pattern[512];
	glob_t found;

	find_wine(home, sizeof home);
	snprintf(pattern, sizeof pattern, "%s/root/usr/lib/*-linux-gnu/wine/*-windows/*", home);
	if (!home[0] || glob(pattern, 0, NULL, &found) != 0)
		SKIP("there is no Wine yet: run tools/wine-set-up as root once");
	for (size_t i = 0; i < found.gl_pathc; i++)
		files += sweep_file(found.gl_pathv[i], tally);
	globfree(&found);
	for (int wide = 0; wide < 2; wide++) {
		printf("# %zu files, %s: %llu instructions, %llu unknown to us\n", files,
		       wide ? "64 bit" : "32 bit", (unsigned long long)tally[wide].instructions,
		       (unsigned long long)tally[wide].unknown);
		CHECK_EQ(0, tally[wide].differ);
		CHECK_EQ(0, tally[wide].unknown);
	}
	CHECK(tally[0].instructions + tally[1].instructions > 1000000);
}

#endif
