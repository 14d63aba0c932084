// Which files have an allocator inside that nothing names: wherever in a piece that is read the
// names and the text lie.
#include "collect/hidden_allocator.h"

#include "os/file.h"
#include "test/test.h"
#include "test/unit/pe_sample.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 65520, CONSTANTS = 2 * PIECE, NAMES = PIECE + 4096, SYMBOLS = 5 };

// A file of what is read of one, and nothing else.
struct made {
	Elf64_Ehdr header;
	Elf64_Shdr sections[6]; // the last one is there where a test says so
	char section_names[48];
	Elf64_Sym symbols[SYMBOLS];
	char names[NAMES];
	char constants[CONSTANTS];
};

static struct made made;

static Elf64_Shdr section(uint32_t type, uint32_t name, size_t at, size_t size)
{
	return (Elf64_Shdr){ .sh_type = type, .sh_name = name, .sh_offset = at, .sh_size = size };
}

// One that has nothing yet.
static void begin(void)
{
	static const char section_names[] = "\0.dynsym\0.dynstr\0.rodata\0.shstrtab";

	memset(&made, 0, sizeof(made));
	memcpy(made.header.e_ident, ELFMAG, SELFMAG);
	made.header.e_ident[EI_CLASS] = ELFCLASS64;
	made.header.e_ident[EI_DATA] = ELFDATA2LSB;
	made.header.e_ident[EI_VERSION] = EV_CURRENT;
	made.header.e_type = ET_DYN;
	made.header.e_machine = EM_X86_64;
	made.header.e_version = EV_CURRENT;
	made.header.e_ehsize = sizeof(made.header);
	made.header.e_shoff = offsetof(struct made, sections);
	made.header.e_shentsize = sizeof(Elf64_Shdr);
	made.header.e_shnum = 5;
	made.header.e_shstrndx = 4;
	memcpy(made.section_names, section_names, sizeof(section_names));
	made.sections[1] =
		section(SHT_DYNSYM, 1, offsetof(struct made, symbols), sizeof(made.symbols));
	made.sections[1].sh_entsize = sizeof(Elf64_Sym);
	made.sections[1].sh_link = 2;
	made.sections[2] = section(SHT_STRTAB, 9, offsetof(struct made, names), sizeof(made.names));
	made.sections[3] =
		section(SHT_PROGBITS, 17, offsetof(struct made, constants), sizeof(made.constants));
	made.sections[4] = section(SHT_STRTAB, 25, offsetof(struct made, section_names),
				   sizeof(made.section_names));
	memset(made.names + 1, 'n', sizeof(made.names) - 2);
	memset(made.constants, 'c', sizeof(made.constants));
}

// Symbol `number` has that name, which is at `at`.
static void name(size_t number, const char *text, uint32_t at, bool defined)
{
	made.names[at - 1] = 0;
	memcpy(made.names + at, text, strlen(text) + 1);
	made.symbols[number].st_name = at;
	made.symbols[number].st_shndx = defined ? 3 : SHN_UNDEF;
}

static void put_text(const char *text, size_t at)
{
	memcpy(made.constants + at, text, strlen(text));
}

static bool symbols; // what was said of the file that was made last

static int look(void)
{
	const char *path = test_temp_path("made");
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ((ssize_t)sizeof(made), write(fd, &made, sizeof(made)));
	close(fd);
	return hidden_allocator_in(path, &symbols);
}

TEST(hidden_allocator_is_found_wherever_its_text_and_names_lie)
{
	for (uint32_t shift = 0; shift <= 44; shift++) {
		begin();
		name(1, "mmap64", 20, false);
		name(2, "munmap", 60, false);
		name(3, "madvise", PIECE - 22 + shift / 2, false);
		CHECK_EQ(-1, look());
		put_text(shift % 2 ? "mimalloc: warning: "
				   : "tcmalloc.max_total_thread_cache_bytes",
			 PIECE - 40 + shift);
		CHECK_EQ(shift % 2 ? 1 : 2, look());
		put_text("<jemalloc>: ", CONSTANTS - 12);
		CHECK_EQ(0, look());
	}
}

TEST(hidden_allocator_with_names_is_none)
{
	static const char *const mallocs[] = { "malloc", "je_malloc", "duckdb_je_malloc",
					       "scalable_malloc", "rpmalloc" };

	for (size_t i = 0; i < sizeof(mallocs) / sizeof(*mallocs); i++) {
		begin();
		put_text("<jemalloc>: ", 100);
		name(1, "mmap", 20, false);
		name(2, "madvise", 40, false);
		CHECK_EQ(-1, look());
		name(3, "munmap", 60, true);
		CHECK_EQ(-1, look());
		name(3, "munmap", 60, false);
		name(4, mallocs[i], 100, false);
		CHECK_EQ(0, look());
		made.symbols[4].st_shndx = 3;
		CHECK_EQ(-1, look());
		// "xmalloc" is another function, although its name has that of malloc in it.
		name(4, "xmalloc", 100, true);
		CHECK_EQ(0, look());
		made.symbols[4].st_name = 101;
		CHECK_EQ(-1, look());
		made.symbols[4].st_name = 0;
		CHECK_EQ(0, look());
		CHECK(!symbols);
		// With a table of all symbols it may be entered by them, which the recorder says.
		made.header.e_shnum = 6;
		made.sections[5] = made.sections[1];
		made.sections[5].sh_type = SHT_SYMTAB;
		made.sections[5].sh_size += sizeof(Elf64_Sym);
		CHECK_EQ(0, look());
		CHECK(symbols);
	}
}

TEST(hidden_allocator_looks_into_what_cannot_be)
{
	begin();
	put_text("<jemalloc>: ", 100);
	name(1, "mmap", 20, false);
	name(2, "munmap", 60, false);
	name(3, "madvise", 100, false);
	CHECK_EQ(0, look());
	made.symbols[4].st_name = UINT32_MAX;
	CHECK_EQ(0, look());
	// Sections that end behind the file, have no bytes in it, or lead nowhere.
	made.sections[3].sh_size = 255 << 20;
	CHECK_EQ(0, look());
	made.sections[3].sh_offset = UINT64_MAX - 10;
	CHECK_EQ(-1, look());
	made.sections[3].sh_offset = sizeof(made) + 100;
	CHECK_EQ(-1, look());
	made.sections[2].sh_type = SHT_NOBITS;
	CHECK_EQ(-1, look());
	made.sections[1].sh_link = 77;
	CHECK_EQ(-1, look());
	made.sections[1].sh_entsize = 0;
	CHECK_EQ(-1, look());
	CHECK_EQ(-1, hidden_allocator_in("/", &symbols));
	CHECK_EQ(-1, hidden_allocator_in("/nowhere", &symbols));
}

// ---- images of Windows ----

enum { IMPORTS = 0x200, THUNKS = 0x230, ALLOC = 0x250, FREE = 0x260, DLL = 0x272, SIGN = 0x280 };

static uint8_t image[SAMPLE_BYTES];
static uint8_t *const image_data = image + 0x400;

// It takes VirtualAlloc from the system, and the function that is named.
static void begin_image(const char *other)
{
	uint8_t *optional = image + 0x40 + 24;

	sample_make(image, false);
	bytes_put_u32(optional + 112 + 8, SAMPLE_DATA + IMPORTS);
	bytes_put_u32(optional + 116 + 8, 40);
	bytes_put_u32(image_data + IMPORTS, SAMPLE_DATA + THUNKS);
	bytes_put_u32(image_data + IMPORTS + 12, SAMPLE_DATA + DLL);
	bytes_put_u32(image_data + THUNKS, SAMPLE_DATA + ALLOC);
	bytes_put_u32(image_data + THUNKS + 8, SAMPLE_DATA + FREE);
	memcpy(image_data + ALLOC + 2, "VirtualAlloc", 13);
	memcpy(image_data + FREE + 2, other, strlen(other) + 1);
	memcpy(image_data + DLL, "KERNEL32.dll", 13);
}

static int look_into(size_t size)
{
	const char *path = test_temp_path("image");
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_EQ((ssize_t)size, write(fd, image, size));
	close(fd);
	return hidden_allocator_in_image(path);
}

TEST(hidden_allocator_of_an_image_maps_and_has_its_text)
{
	begin_image("VirtualFree");
	CHECK_EQ(-1, look_into(sizeof image));
	memcpy(image_data + SIGN, "mimalloc: warning: ", 19);
	CHECK_EQ(HIDDEN_ALLOCATOR_MIMALLOC, look_into(sizeof image));
	memcpy(image_data + SIGN, "a <jemalloc>: here ", 19);
	CHECK_EQ(HIDDEN_ALLOCATOR_JEMALLOC, look_into(sizeof image));
	begin_image("VirtualLock");
	memcpy(image_data + SIGN, "mimalloc: warning: ", 19);
	CHECK_EQ(-1, look_into(sizeof image));
}

TEST(hidden_allocator_of_an_image_is_go_s_by_its_table_of_functions)
{
	static const uint8_t head[] = { 0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8 };

	begin_image("VirtualFree");
	memcpy(image_data + SIGN, head, sizeof head);
	CHECK_EQ(HIDDEN_ALLOCATOR_GO, look_into(sizeof image));
	image_data[SIGN + 4] = 1;
	CHECK_EQ(-1, look_into(sizeof image));
	image_data[SIGN + 4] = 0;
	bytes_put_u16(image + 0x40 + 22, 0x2000); // a DLL has Go's heap as well
	CHECK_EQ(HIDDEN_ALLOCATOR_GO, look_into(sizeof image));
}

TEST(hidden_allocator_of_an_image_is_a_language_by_what_is_exported)
{
	begin_image("VirtualLock");
	memcpy(image_data + 0x80, "perl_parse", 11);
	CHECK_EQ(HIDDEN_ALLOCATOR_PERL, look_into(sizeof image));
	memcpy(image_data + 0x80, "perl_parser", 12);
	CHECK_EQ(-1, look_into(sizeof image));
}

TEST(hidden_allocator_looks_into_any_image)
{
	begin_image("VirtualFree");
	memcpy(image_data + SIGN, "mimalloc: warning: ", 19);
	for (size_t size = 0; size < 0x400 + SIGN + 19; size += size < 0x300 ? 1 : 7)
		CHECK_EQ(-1, look_into(size));
	for (size_t at = 0x40; at < 0x40 + 24 + 240 + 80; at += 4) {
		begin_image("VirtualFree");
		memcpy(image_data + SIGN, "mimalloc: warning: ", 19);
		bytes_put_u32(image + at, UINT32_MAX);
		look_into(sizeof image);
	}
	for (size_t at = 0; at < SIGN; at += 4) {
		begin_image("VirtualFree");
		bytes_put_u32(image_data + at, UINT32_MAX - 4);
		look_into(sizeof image);
	}
}
