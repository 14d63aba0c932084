// Of a file that anybody may have made, read by libelf: only its table of dynamic symbols, the one
// of all symbols if that is no longer, and, of those few files that could have an allocator, its
// constants.
#include "collect/hidden_allocator.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIDDEN_ALLOCATOR_TEXT_MAX = 256 << 20 };

struct hidden_allocator_file {
	bool named;     // it has a table of all symbols, or one that has a malloc: that is entered
	unsigned wants; // of the three functions, one bit each
	GElf_Shdr constants;
};

// "je_malloc", or what is entered under another name.
static bool hidden_allocator_is_malloc(const char *name)
{
	static const char *const begins[] = { "",    "je_",  "_rjem_",     "_rjem_je_", "tc_",
					      "mi_", "_mi_", "moz_arena_", "scalable_" };

	size_t length = strlen(name), end = strlen("malloc");

	if (length < end || memcmp(name + length - end, "malloc", end) != 0)
		return false;
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (strlen(begins[i]) == length - end && memcmp(name, begins[i], length - end) == 0)
			return true;
	return false;
}

static void hidden_allocator_meet(struct hidden_allocator_file *file, const char *name,
				  bool defined)
{
	static const char *const wanted[] = { "mmap", "munmap", "madvise" };

	if (defined) {
		file->named |= hidden_allocator_is_malloc(name);
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
	uint64_t dynamic_bytes = 0; // of what it exports; bun has that twice
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (header.sh_type == SHT_DYNSYM)
			dynamic_bytes = header.sh_size;
		if (header.sh_type == SHT_SYMTAB && header.sh_size > dynamic_bytes)
			file->named = true;
		else if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
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
