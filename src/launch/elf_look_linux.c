// By libelf, and of a file that may be anything: a table is read only in the bounds of the file,
// and never more than ELF_LOOK_BYTES_MAX of it. For example `ls`: 64 bits, machine 62, PT_INTERP
// /lib64/ld-linux-x86-64.so.2 (not musl), no SONAME, and among DT_NEEDED no libasan. The dynamic
// section is read twice, since the string table may be named after the names that are in it.
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

// A library has a name (SONAME), a program that may be loaded anywhere has none: both are ET_DYN.
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

// A file may claim billions of program headers; 32,768 are looked at.
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
	// A program that may be loaded anywhere (PIE) is ET_DYN, as a library is.
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	    header.e_ident[EI_DATA] == ELFDATA2LSB &&
	    (header.e_type == ET_EXEC || header.e_type == ET_DYN)) {
		look.elf = true;
		look.machine = header.e_machine;
		look.bits = header.e_ident[EI_CLASS] == ELFCLASS32 ? 32 : 64;
		elf_look_segments(elf, &look);
	}
	elf_end(elf);
	return look;
}
