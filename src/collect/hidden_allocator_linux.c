// Of a file that anybody may have made. libelf reads its headers, and the rest is read here, a
// piece at a time: libLLVM's names and constants are 35 MB, and to have them in memory at once took
// three times as long as to look at them.
//
// For example, among the names "abort\0xmalloc\0mmap\0munmap\0madvise\0" four could be of what
// is asked for here: malloc (at 7), mmap (14), munmap (19) and madvise (26). A symbol without a
// section whose name is at 19 is munmap, which the file wants from its C library. One with a
// section and its name at 7 would be a malloc of its own; at 6 it is xmalloc, another function.
#include "collect/hidden_allocator.h"

#include "base/mem.h"
#include "base/sse2.h"
#include "os/file.h"
#include "wire/compiler.h"

#include <fcntl.h>
#include <gelf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HIDDEN_ALLOCATOR_TEXT_MAX = 256 << 20,
	HIDDEN_ALLOCATOR_PIECE = 48 * 1365, // whole symbols, of 24 bytes or 16
	HIDDEN_ALLOCATOR_KEPT = 64,         // of the piece before; no text is longer
	HIDDEN_ALLOCATOR_NAMES_MAX = 65536, // a file with more names of a malloc has none of these
	HIDDEN_ALLOCATOR_FILTER = 4096,
	HIDDEN_ALLOCATOR_BEYOND = 32,
};

// What the file's C library has to give, as bits, and what it has itself.
enum {
	HIDDEN_ALLOCATOR_MMAP = 1,
	HIDDEN_ALLOCATOR_MUNMAP = 2,
	HIDDEN_ALLOCATOR_MADVISE = 4,
	HIDDEN_ALLOCATOR_WANTS = 7,
	HIDDEN_ALLOCATOR_MALLOC = 8,
};

// Where a name lies among the names, and what it is of.
struct hidden_allocator_name {
	uint32_t at, what;
};

struct hidden_allocator_file {
	int fd;
	bool wide;      // of 64 bits
	bool named;     // it has a malloc among its symbols: that is entered
	bool symbols;   // it has a table of all symbols, which the recorder goes by
	unsigned wants; // of the three functions
	GElf_Shdr constants;
	struct hidden_allocator_name *names; // in order
	size_t names_count, names_capacity;
	uint8_t filter[HIDDEN_ALLOCATOR_FILTER / 8]; // of names' places, a bit each
	unsigned kinds;                              // of texts that were found, a bit each
	// Behind the last one is room for a look that goes beyond it.
	uint8_t piece[HIDDEN_ALLOCATOR_KEPT + HIDDEN_ALLOCATOR_PIECE + HIDDEN_ALLOCATOR_BEYOND];
};

// `size` bytes, of which the first `kept` were there before, and what lies behind them begins at
// `at` of the section.
typedef void hidden_allocator_look_at(struct hidden_allocator_file *file, size_t kept, size_t size,
				      uint64_t at);

// A section, a piece at a time. The last 64 bytes of a piece are in front of the next one, so that
// a text that goes across is whole there.
static void hidden_allocator_read(struct hidden_allocator_file *file, const GElf_Shdr *header,
				  hidden_allocator_look_at *look_at)
{
	size_t kept = 0, size;

	if (header->sh_type == SHT_NOBITS || header->sh_offset > INT64_MAX / 2 ||
	    header->sh_size > INT64_MAX / 2)
		return;
	for (uint64_t at = 0; at < header->sh_size; at += size) {
		size_t most = header->sh_size - at < HIDDEN_ALLOCATOR_PIECE
				      ? (size_t)(header->sh_size - at)
				      : HIDDEN_ALLOCATOR_PIECE;
		ptrdiff_t got =
			file_read_at(file->fd, file->piece + kept, most, header->sh_offset + at);

		if (got <= 0)
			return;
		size = (size_t)got;
		ASSERT(kept <= HIDDEN_ALLOCATOR_KEPT && size <= HIDDEN_ALLOCATOR_PIECE);
		look_at(file, kept, kept + size, at);
		if (kept + size < HIDDEN_ALLOCATOR_KEPT)
			return; // a short read: the end of the file
		memmove(file->piece, file->piece + kept + size - HIDDEN_ALLOCATOR_KEPT,
			HIDDEN_ALLOCATOR_KEPT);
		kept = HIDDEN_ALLOCATOR_KEPT;
	}
}

// A name that ends at `end`, before which `left` bytes can be read, may be `text`, or end with it:
// then its place among the names is noted. Names share their ends ("xmalloc" has "malloc" in it),
// so what a symbol is called is known by where its name begins.
static void hidden_allocator_meet(struct hidden_allocator_file *file, const uint8_t *end,
				  size_t left, uint64_t end_at, const char *text, uint32_t what)
{
	size_t length = strlen(text);
	uint32_t at = (uint32_t)(end_at - length);

	if (length > left || memcmp(end - length, text, length) != 0 || end_at > UINT32_MAX ||
	    file->names_count >= HIDDEN_ALLOCATOR_NAMES_MAX)
		return;
	*MEM_ADD(file->names, file->names_count, file->names_capacity) =
		(struct hidden_allocator_name){ at, what };
	file->filter[at % HIDDEN_ALLOCATOR_FILTER / 8] |= (uint8_t)(1 << at % 8);
}

// Names of a malloc: "je_malloc", or what is entered under another name.
static void hidden_allocator_meet_malloc(struct hidden_allocator_file *file, const uint8_t *end,
					 size_t left, uint64_t end_at)
{
	static const char *const names[] = {
		"malloc",           "je_malloc",        "_rjem_malloc",    "_rjem_je_malloc",
		"duckdb_je_malloc", "je_arrow_malloc",  "tc_malloc",       "mi_malloc",
		"_mi_malloc",       "moz_arena_malloc", "scalable_malloc", "rpmalloc"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		hidden_allocator_meet(file, end, left, end_at, names[i], HIDDEN_ALLOCATOR_MALLOC);
}

// Names that end in the piece. Most are none of those that are wanted, and the last letter says so.
static void hidden_allocator_names(struct hidden_allocator_file *file, size_t kept, size_t size,
				   uint64_t at)
{
	const uint8_t *begin = file->piece, *from = begin + kept, *end;

	for (; (end = memchr(from, 0, size - (size_t)(from - begin))) != NULL; from = end + 1) {
		size_t left = (size_t)(end - begin);
		uint64_t end_at = at + left - kept;
		uint8_t last = left > 0 ? end[-1] : 0;

		if (last == 'c') {
			hidden_allocator_meet_malloc(file, end, left, end_at);
		} else if (last == 'p') {
			hidden_allocator_meet(file, end, left, end_at, "mmap",
					      HIDDEN_ALLOCATOR_MMAP);
			hidden_allocator_meet(file, end, left, end_at, "munmap",
					      HIDDEN_ALLOCATOR_MUNMAP);
		} else if (last == '4') {
			hidden_allocator_meet(file, end, left, end_at, "mmap64",
					      HIDDEN_ALLOCATOR_MMAP);
		} else if (last == 'e') {
			hidden_allocator_meet(file, end, left, end_at, "madvise",
					      HIDDEN_ALLOCATOR_MADVISE);
		}
	}
}

static int hidden_allocator_compare(const void *one, const void *other)
{
	const struct hidden_allocator_name *a = one, *b = other;

	return (a->at > b->at) - (a->at < b->at);
}

// A filter of 4,096 bits answers for nearly all symbols; libLLVM has 60,000.
static void hidden_allocator_symbol(struct hidden_allocator_file *file, uint32_t name, bool defined)
{
	const struct hidden_allocator_name wanted = { name, 0 }, *found;

	if (!(file->filter[name % HIDDEN_ALLOCATOR_FILTER / 8] >> name % 8 & 1))
		return;
	found = bsearch(&wanted, file->names, file->names_count, sizeof(wanted),
			hidden_allocator_compare);
	if (!found)
		return;
	if (found->what == HIDDEN_ALLOCATOR_MALLOC)
		file->named |= defined;
	else if (!defined)
		file->wants |= found->what;
}

static void hidden_allocator_symbols(struct hidden_allocator_file *file, size_t kept, size_t size,
				     uint64_t)
{
	size_t each = file->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	size_t section_at = file->wide ? offsetof(Elf64_Sym, st_shndx)
				       : offsetof(Elf32_Sym, st_shndx);

	for (; size - kept >= each; kept += each) {
		uint32_t name; // first of all in both classes
		uint16_t section;

		memcpy(&name, file->piece + kept, sizeof(name));
		memcpy(&section, file->piece + kept + section_at, sizeof(section));
		hidden_allocator_symbol(file, name, section != SHN_UNDEF);
	}
}

static void hidden_allocator_read_symbols(struct hidden_allocator_file *file, Elf *elf,
					  const GElf_Shdr *header)
{
	GElf_Shdr names;

	file->wide = gelf_getclass(elf) == ELFCLASS64;
	if (header->sh_entsize != (file->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)) ||
	    !gelf_getshdr(elf_getscn(elf, header->sh_link), &names))
		return;
	file->names_count = 0;
	memset(file->filter, 0, sizeof(file->filter));
	hidden_allocator_read(file, &names, hidden_allocator_names);
	if (file->names_count == 0)
		return;
	qsort(file->names, file->names_count, sizeof(*file->names), hidden_allocator_compare);
	hidden_allocator_read(file, header, hidden_allocator_symbols);
}

// Its sections. Of a file with a table of all symbols only what it exports is read: what the
// recorder finds in that table, it says (hidden_allocator_enter).
static bool hidden_allocator_sections(struct hidden_allocator_file *file, Elf *elf)
{
	uint64_t dynamic_bytes = 0; // of what it exports; bun has that twice
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
		if (header.sh_type == SHT_DYNSYM)
			dynamic_bytes = header.sh_size;
		file->symbols |= header.sh_type == SHT_SYMTAB && header.sh_size > dynamic_bytes;
		if (name && strcmp(name, ".rodata") == 0 && header.sh_type == SHT_PROGBITS)
			file->constants = header;
	}
	while (!file->named && (section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM ||
		     (header.sh_type == SHT_SYMTAB && !file->symbols)))
			hidden_allocator_read_symbols(file, elf, &header);
	return !file->named && file->wants == HIDDEN_ALLOCATOR_WANTS &&
	       file->constants.sh_size > 0 && file->constants.sh_size <= HIDDEN_ALLOCATOR_TEXT_MAX;
}

// The "malloc" at `at` of the piece may be a part of one of the texts.
static void hidden_allocator_match(struct hidden_allocator_file *file, size_t at, size_t size)
{
	for (unsigned i = 0; i < HIDDEN_ALLOCATOR_ALLOCATORS; i++) {
		const char *text = hidden_allocator_texts[i].text;
		size_t before = (size_t)(strstr(text, "malloc") - text), length = strlen(text);

		if (at >= before && at - before + length <= size &&
		    memcmp(file->piece + at - before, text, length) == 0)
			file->kinds |= 1u << i;
	}
}

// By a text that each of them has. All have "malloc" in them, so that is looked for, sixteen places
// at once: an m, and a c five bytes further.
static void hidden_allocator_constants(struct hidden_allocator_file *file, size_t, size_t size,
				       uint64_t)
{
	const __m128i first = _mm_set1_epi8('m'), last = _mm_set1_epi8('c');

	for (size_t i = 0; i < size; i += 16) {
		const uint8_t *at = file->piece + i;
		__m128i firsts = _mm_loadu_si128((const __m128i *)(const void *)at);
		__m128i lasts = _mm_loadu_si128((const __m128i *)(const void *)(at + 5));
		unsigned both = (unsigned)_mm_movemask_epi8(
			_mm_and_si128(_mm_cmpeq_epi8(firsts, first), _mm_cmpeq_epi8(lasts, last)));

		for (; unlikely(both); both &= both - 1) {
			size_t found = i + (size_t)__builtin_ctz(both);

			if (memcmp(file->piece + found, "malloc", 6) == 0)
				hidden_allocator_match(file, found, size);
		}
	}
}

// The kind (an index of the list of kinds), or -1. NONBLOCK: the path may be a pipe by now.
int hidden_allocator_in(const char *path, bool *symbols)
{
	struct hidden_allocator_file *file;
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), found = -1;
	Elf *elf;

	if (fd < 0)
		return -1;
	file = mem_alloc(1, sizeof(*file));
	file->fd = fd;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && elf_version(EV_CURRENT)) {
		elf = elf_begin(fd, ELF_C_READ, NULL);
		if (hidden_allocator_sections(file, elf))
			hidden_allocator_read(file, &file->constants, hidden_allocator_constants);
		elf_end(elf);
	}
	if (file->kinds)
		found = __builtin_ctz(file->kinds);
	*symbols = file->symbols;
	MEM_FREE(file->names, file);
	close(fd);
	return found;
}

void hidden_allocator_explain(const struct hidden_allocator *allocator, struct str *text)
{
	str_format(text, "%s has %s inside and %s: what is allocated with that is not recorded%s",
		   allocator->path, allocator->what,
		   allocator->symbols ? "its functions have names of their own" : "is stripped",
		   allocator->symbols ? "" : " (try: a build with symbols, or its debug file)");
}
