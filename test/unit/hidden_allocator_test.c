// Which files have an allocator inside that nothing names: wherever in a piece that is read the
// names and the text lie.
#include "collect/hidden_allocator.h"

#include "os/file.h"
#include "test/test.h"

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
					       "scalable_malloc" };

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
