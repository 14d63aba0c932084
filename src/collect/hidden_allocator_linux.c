// Of a file that anybody may have made, read by libelf: only its table of dynamic symbols, and, of
// those few files that could have an allocator, its constants.
#include "collect/hidden_allocator.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIDDEN_ALLOCATOR_TEXT_MAX = 256 << 20 };

struct hidden_allocator_file {
	bool named; // it has a table of all symbols, or exports malloc: what is there is entered
	unsigned wants; // of the three functions, one bit each
	GElf_Shdr constants;
};

static void hidden_allocator_meet(struct hidden_allocator_file *file, const char *name,
				  bool defined)
{
	static const char *const wanted[] = { "mmap", "munmap", "madvise" };

	if (defined) {
		file->named |= strcmp(name, "malloc") == 0;
		return;
	}
	if (strcmp(name, "mmap64") == 0)
		name = "mmap";
	for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (strcmp(name, wanted[i]) == 0)
			file->wants |= 1u << i;
}

static void hidden_allocator_read_symbols(struct hidden_allocator_file *file, Elf *elf,
					  Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 1; data && i < count && i < INT_MAX; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol))
			return;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name)
			hidden_allocator_meet(file, name, symbol.st_shndx != SHN_UNDEF);
	}
}

static bool hidden_allocator_read(struct hidden_allocator_file *file, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		file->named |= header.sh_type == SHT_SYMTAB;
		if (header.sh_type == SHT_DYNSYM)
			hidden_allocator_read_symbols(file, elf, section, &header);
		if (name && strcmp(name, ".rodata") == 0 && header.sh_type == SHT_PROGBITS)
			file->constants = header;
	}
	return !file->named && file->wants == 7 && file->constants.sh_size > 0 &&
	       file->constants.sh_size <= HIDDEN_ALLOCATOR_TEXT_MAX &&
	       file->constants.sh_offset <= INT64_MAX;
}

// By a text that each of them has.
static int hidden_allocator_search(const void *bytes, size_t size)
{
	static const char *const texts[HIDDEN_ALLOCATOR_KINDS] = {
		"<jemalloc>: ", "mimalloc: warning: ", "tcmalloc.max_total_thread_cache_bytes"
	};

	for (int i = 0; i < HIDDEN_ALLOCATOR_KINDS; i++)
		if (memmem(bytes, size, texts[i], strlen(texts[i])))
			return i;
	return -1;
}

int hidden_allocator_in(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), found = -1;
	struct hidden_allocator_file file = { 0 };
	struct stat status;
	Elf_Data *data;
	Elf *elf;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && elf_version(EV_CURRENT)) {
		elf = elf_begin(fd, ELF_C_READ, NULL);
		if (hidden_allocator_read(&file, elf)) {
			data = elf_getdata_rawchunk(elf, (int64_t)file.constants.sh_offset,
						    file.constants.sh_size, ELF_T_BYTE);
			if (data && data->d_buf)
				found = hidden_allocator_search(data->d_buf, data->d_size);
		}
		elf_end(elf);
	}
	close(fd);
	return found;
}
