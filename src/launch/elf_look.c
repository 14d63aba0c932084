#include "launch/elf_look.h"

#include "base/mem.h"
#include "os/file.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ELF_LOOK_PATH_MAX = 4096, PIECE_BYTES = 64 << 10, NAMES_MAX = 1 << 20 };

// `size` bytes at `at` of the file as items of `type`, or NULL. libelf's, as all that follows: it
// checks what the file says against the file's size.
static Elf_Data *elf_look_chunk(Elf *elf, const GElf_Phdr *segment, Elf_Type type)
{
	if (segment->p_offset > INT64_MAX || segment->p_filesz > ELF_LOOK_BYTES_MAX)
		return NULL;
	return elf_getdata_rawchunk(elf, (int64_t)segment->p_offset, segment->p_filesz, type);
}

// Where in the file an address lies. -1: nowhere.
static int64_t elf_look_offset(Elf *elf, uint64_t address)
{
	GElf_Phdr segment;

	for (int i = 0; i <= INT16_MAX && gelf_getphdr(elf, i, &segment); i++)
		if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
		    address - segment.p_vaddr < segment.p_filesz &&
		    segment.p_offset <= INT64_MAX - (address - segment.p_vaddr))
			return (int64_t)(segment.p_offset + (address - segment.p_vaddr));
	return -1;
}

// Whether a library that is needed, by its name at `offset` of the file, is AddressSanitizer's
// runtime, gcc's or clang's.
static bool elf_look_is_asan(Elf *elf, int64_t offset)
{
	static const char *const names[] = { "libasan.so", "libclang_rt.asan" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);
		Elf_Data *data = elf_getdata_rawchunk(elf, offset, length, ELF_T_BYTE);

		if (data && data->d_buf && memcmp(data->d_buf, names[i], length) == 0)
			return true;
	}
	return false;
}

static void elf_look_dynamic(Elf *elf, const GElf_Phdr *dynamic, struct elf_look *look)
{
	Elf_Data *data = elf_look_chunk(elf, dynamic, ELF_T_DYN);
	int64_t strings = -1;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		if (entry.d_tag == DT_SONAME)
			look->is_library = true;
		else if (entry.d_tag == DT_STRTAB)
			strings = elf_look_offset(elf, entry.d_un.d_ptr);
	}
	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_NEEDED && strings >= 0 && entry.d_un.d_val <= UINT32_MAX &&
		    elf_look_is_asan(elf, strings + (int64_t)entry.d_un.d_val))
			look->needs_asan = true;
}

static bool elf_look_is_musl(Elf *elf, const GElf_Phdr *interpreter)
{
	static const char name[] = "/ld-musl-";
	Elf_Data *data = elf_look_chunk(elf, interpreter, ELF_T_BYTE);

	return data && data->d_buf && data->d_size <= ELF_LOOK_PATH_MAX &&
	       memmem(data->d_buf, data->d_size, name, sizeof(name) - 1) != NULL;
}

static void elf_look_segments(Elf *elf, struct elf_look *look)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return;
	for (size_t i = 0; i < count && i <= INT16_MAX && gelf_getphdr(elf, (int)i, &segment);
	     i++) {
		if (segment.p_type == PT_INTERP) {
			look->interpreter = true;
			look->musl = elf_look_is_musl(elf, &segment);
		}
		if (segment.p_type == PT_DYNAMIC)
			elf_look_dynamic(elf, &segment, look);
	}
}

// Offsets in a table of strings where "malloc" ends a string, rising; `seen` has a bit for each,
// so that hardly any other is searched for.
struct elf_look_names {
	uint32_t *offsets;
	size_t count, capacity;
	uint64_t seen[64];
};

// Up to `size` bytes at `offset`. Returns their number.
static size_t elf_look_read(int fd, uint64_t offset, void *out, size_t size)
{
	ptrdiff_t got = file_read_at(fd, out, size, offset);

	return got > 0 ? (size_t)got : 0;
}

static bool elf_look_is_sane(const GElf_Shdr *table)
{
	return table->sh_size <= ELF_LOOK_BYTES_MAX && table->sh_offset <= INT64_MAX / 2;
}

static void elf_look_add_name(struct elf_look_names *names, uint32_t offset)
{
	if (names->count == NAMES_MAX) // no program has so many
		return;
	names->offsets = mem_grow(names->offsets, &names->capacity, names->count + 1,
				  sizeof(*names->offsets));
	names->offsets[names->count++] = offset;
	names->seen[offset / 64 % 64] |= UINT64_C(1) << offset % 64;
}

// Linkers let a string share the end of another one, so each that ends so counts. They are read in
// pieces that overlap.
static void elf_look_find_names(int fd, const GElf_Shdr *strings, struct elf_look_names *names)
{
	static const char word[] = "malloc";
	char *piece = mem_alloc(PIECE_BYTES, 1);

	for (uint64_t at = 0; at + sizeof(word) <= strings->sh_size;) {
		uint64_t left = strings->sh_size - at;
		size_t want = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		size_t got = elf_look_read(fd, strings->sh_offset + at, piece, want);
		const char *end = piece + got, *found = piece;

		while ((found = memmem(found, (size_t)(end - found), word, sizeof(word)))) {
			elf_look_add_name(names, (uint32_t)(at + (uint64_t)(found - piece)));
			found += sizeof(word);
		}
		if (got < want)
			break;
		at += want - (sizeof(word) - 1);
	}
	mem_free(piece);
}

static int elf_look_compare(const void *a, const void *b)
{
	const uint32_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static bool elf_look_has_name(const struct elf_look_names *names, uint32_t name)
{
	return (names->seen[name / 64 % 64] >> name % 64 & 1) &&
	       bsearch(&name, names->offsets, names->count, sizeof(name), elf_look_compare);
}

// Is one of `count` symbols a function of such a name?
static bool elf_look_symbols_define(const struct elf_look_names *names, const void *symbols,
				    size_t count, int class)
{
	const Elf64_Sym *wide = symbols;
	const Elf32_Sym *narrow = symbols;

	for (size_t i = 0; i < count; i++) {
		uint32_t name = class == ELFCLASS64 ? wide[i].st_name : narrow[i].st_name;
		uint16_t section = class == ELFCLASS64 ? wide[i].st_shndx : narrow[i].st_shndx;
		unsigned type =
			GELF_ST_TYPE(class == ELFCLASS64 ? wide[i].st_info : narrow[i].st_info);

		if (section != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
		    elf_look_has_name(names, name))
			return true;
	}
	return false;
}

// Does the symbol table define malloc, as a function? Large programs have half a million symbols:
// names are searched for, and symbols are looked at where they lie.
static bool elf_look_table_defines_malloc(int fd, const GElf_Shdr *table, const GElf_Shdr *strings,
					  int class)
{
	size_t entry = class == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	size_t most = PIECE_BYTES / entry;
	struct elf_look_names names = { 0 };
	bool defines = false;
	void *piece;

	if (!elf_look_is_sane(table) || !elf_look_is_sane(strings) || table->sh_entsize != entry)
		return false;
	elf_look_find_names(fd, strings, &names);
	piece = mem_alloc(most, entry);
	for (uint64_t left = names.count > 0 ? table->sh_size / entry : 0; left > 0 && !defines;) {
		size_t want = left < most ? (size_t)left : most;
		uint64_t at = table->sh_offset + (table->sh_size / entry - left) * entry;
		size_t got = elf_look_read(fd, at, piece, want * entry) / entry;

		defines = elf_look_symbols_define(&names, piece, got, class);
		left = got < want ? 0 : left - want;
	}
	mem_free(piece);
	mem_free(names.offsets);
	return defines;
}

// In a table of that type, SHT_DYNSYM or SHT_SYMTAB.
static bool elf_look_defines_malloc(Elf *elf, int fd, uint32_t type)
{
	Elf_Scn *section = NULL;
	GElf_Shdr table, strings;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &table) && table.sh_type == type &&
		    gelf_getshdr(elf_getscn(elf, table.sh_link), &strings) &&
		    elf_look_table_defines_malloc(fd, &table, &strings, gelf_getclass(elf)))
			return true;
	return false;
}

struct elf_look elf_look_at(int fd)
{
	struct elf_look look = { 0 };
	struct stat status;
	GElf_Ehdr header;
	Elf *elf;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    elf_version(EV_CURRENT) == EV_NONE)
		return look;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	    header.e_ident[EI_DATA] == ELFDATA2LSB &&
	    (header.e_type == ET_EXEC || header.e_type == ET_DYN)) {
		look.elf = true;
		look.machine = header.e_machine;
		look.bits = header.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64;
		elf_look_segments(elf, &look);
		look.exports_malloc = elf_look_defines_malloc(elf, fd, SHT_DYNSYM);
		look.defines_malloc = look.exports_malloc ||
				      elf_look_defines_malloc(elf, fd, SHT_SYMTAB);
	}
	elf_end(elf);
	return look;
}
