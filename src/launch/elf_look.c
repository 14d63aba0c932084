#include "launch/elf_look.h"

#include "base/mem.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct elf_file {
	int fd;
	uint64_t size;
};

static bool elf_read(const struct elf_file *file, uint64_t at, void *out, uint64_t size)
{
	uint8_t *to = out;

	if (at > file->size || size > file->size - at)
		return false;
	while (size > 0) {
		ssize_t got = pread(file->fd, to, size, (off_t)at);

		if (got <= 0)
			return false;
		to += got;
		at += (uint64_t)got;
		size -= (uint64_t)got;
	}
	return true;
}

// `count` items of `item` bytes at `at`, in new memory, or NULL. Freed with mem_free.
static void *elf_read_table(const struct elf_file *file, uint64_t at, uint64_t count, uint64_t item)
{
	void *table;

	if (count == 0 || count > ELF_LOOK_BYTES_MAX / item)
		return NULL;
	if (at > file->size || count * item > file->size - at)
		return NULL;
	table = mem_alloc(count, item);
	if (elf_read(file, at, table, count * item))
		return table;
	mem_free(table);
	return NULL;
}

static bool elf_has_soname(const struct elf_file *file, const Elf64_Phdr *dynamic)
{
	uint64_t count = dynamic->p_filesz / sizeof(Elf64_Dyn);
	Elf64_Dyn *entries = elf_read_table(file, dynamic->p_offset, count, sizeof(*entries));
	bool found = false;

	for (uint64_t i = 0; entries && i < count && entries[i].d_tag != DT_NULL; i++)
		found = found || entries[i].d_tag == DT_SONAME;
	mem_free(entries);
	return found;
}

static void elf_look_segments(const struct elf_file *file, const Elf64_Ehdr *header,
			      struct elf_look *look)
{
	Elf64_Phdr *segments;

	if (header->e_phentsize != sizeof(*segments))
		return;
	segments = elf_read_table(file, header->e_phoff, header->e_phnum, sizeof(*segments));
	for (int i = 0; segments && i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_INTERP)
			look->interpreter = true;
		if (segments[i].p_type == PT_DYNAMIC)
			look->is_library = elf_has_soname(file, &segments[i]);
	}
	mem_free(segments);
}

static bool elf_defines(const Elf64_Sym *symbols, uint64_t count, const char *names,
			uint64_t names_size, const char *name)
{
	size_t size = strlen(name) + 1;

	for (uint64_t i = 0; i < count; i++) {
		unsigned type = ELF64_ST_TYPE(symbols[i].st_info);

		if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= names_size)
			continue;
		if (type != STT_FUNC && type != STT_GNU_IFUNC)
			continue;
		if (names_size - symbols[i].st_name >= size &&
		    memcmp(names + symbols[i].st_name, name, size) == 0)
			return true;
	}
	return false;
}

// Does the symbol table in `section` define malloc?
static bool elf_table_defines_malloc(const struct elf_file *file, const Elf64_Shdr *sections,
				     uint32_t sections_count, const Elf64_Shdr *section)
{
	const Elf64_Shdr *strings;
	Elf64_Sym *symbols;
	char *names;
	uint64_t count = section->sh_size / sizeof(*symbols);
	bool found = false;

	if (section->sh_entsize != sizeof(*symbols) || section->sh_link >= sections_count)
		return false;
	strings = &sections[section->sh_link];
	symbols = elf_read_table(file, section->sh_offset, count, sizeof(*symbols));
	names = elf_read_table(file, strings->sh_offset, strings->sh_size, 1);
	if (symbols && names)
		found = elf_defines(symbols, count, names, strings->sh_size, "malloc");
	mem_free(symbols);
	mem_free(names);
	return found;
}

static void elf_look_symbols(const struct elf_file *file, const Elf64_Ehdr *header,
			     struct elf_look *look)
{
	Elf64_Shdr *sections;

	if (header->e_shentsize != sizeof(*sections))
		return;
	sections = elf_read_table(file, header->e_shoff, header->e_shnum, sizeof(*sections));
	for (uint32_t i = 0; sections && i < header->e_shnum && !look->defines_malloc; i++)
		if (sections[i].sh_type == SHT_DYNSYM || sections[i].sh_type == SHT_SYMTAB)
			look->defines_malloc = elf_table_defines_malloc(
				file, sections, header->e_shnum, &sections[i]);
	mem_free(sections);
}

struct elf_look elf_look_at(int fd)
{
	struct elf_look look = { 0 };
	struct elf_file file = { .fd = fd };
	Elf64_Ehdr header;
	struct stat status;

	// e_type and e_machine stand at the same place in both classes.
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return look;
	file.size = (uint64_t)status.st_size;
	memset(&header, 0, sizeof(header));
	if (!elf_read(&file, 0, &header, sizeof(Elf32_Ehdr)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (header.e_type != ET_EXEC && header.e_type != ET_DYN))
		return look;
	look.elf = true;
	look.machine = header.e_machine;
	look.bits = header.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64;
	if (look.bits == 64 && elf_read(&file, 0, &header, sizeof(header))) {
		elf_look_segments(&file, &header, &look);
		elf_look_symbols(&file, &header, &look);
	}
	return look;
}
