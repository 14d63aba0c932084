#include "launch/elf_look.h"

#include <gelf.h>
#include <string.h>
#include <sys/stat.h>

enum { ELF_LOOK_PATH_MAX = 4096 };

// `size` bytes at `at` of the file as items of `type`, or NULL. libelf's, as all that follows: it
// checks what the file says against the file's size.
static Elf_Data *elf_look_chunk(Elf *elf, const GElf_Phdr *segment, Elf_Type type)
{
	if (segment->p_offset > INT64_MAX || segment->p_filesz > ELF_LOOK_BYTES_MAX)
		return NULL;
	return elf_getdata_rawchunk(elf, (int64_t)segment->p_offset, segment->p_filesz, type);
}

static bool elf_look_has_soname(Elf *elf, const GElf_Phdr *dynamic)
{
	Elf_Data *data = elf_look_chunk(elf, dynamic, ELF_T_DYN);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_SONAME)
			return true;
	return false;
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
			look->is_library = elf_look_has_soname(elf, &segment);
	}
}

// Does the symbol table in `section` define malloc?
static bool elf_look_table_defines_malloc(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data;
	GElf_Sym symbol;

	if (header->sh_size > ELF_LOOK_BYTES_MAX)
		return false;
	data = elf_getdata(section, NULL);
	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		unsigned type = GELF_ST_TYPE(symbol.st_info);
		const char *name;

		if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && strcmp(name, "malloc") == 0)
			return true;
	}
	return false;
}

static bool elf_look_defines_malloc(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
		    elf_look_table_defines_malloc(elf, section, &header))
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
		look.defines_malloc = elf_look_defines_malloc(elf);
	}
	elf_end(elf);
	return look;
}
