// For example, `malloc` and `__libc_malloc` are both global and cover the same 32 bytes. In the
// sorted list `malloc` comes first, because it has fewer underscores; of two ranges that are equal,
// a nest takes the one with the lower number, and so the first. A local label in the midst of them
// has no size: it ends at the next symbol, or with its section, and is asked only where no symbol
// with a size is, because its range is put one level further out.
#include "symbols/symtab.h"

#include "base/mem.h"
#include "base/sort.h"
#include "symbols/places.h"

#include <stdlib.h>

struct symtab_entry {
	uint64_t start, end;
	const char *name;
	const char *source; // file of a local symbol, or NULL
	uint8_t preference; // smaller is better
	bool sized;
};

// What each section of a file says about the symbols in it.
struct sections {
	struct section {
		uint64_t start, end;
		bool has_code;
	} * items;
	size_t count;
};

// By the number of the section, as symbols refer to it. What cannot be read stays { 0, 0 }, in
// which no symbol is.
static struct sections read_sections(const struct object *object)
{
	struct sections sections = { 0 };
	Elf_Scn *section = NULL;

	if (elf_getshdrnum(object->elf, &sections.count) != 0)
		sections.count = 0;
	sections.items = mem_alloc(sections.count + 1, sizeof *sections.items);
	while ((section = elf_nextscn(object->elf, section))) {
		size_t at = elf_ndxscn(section);
		GElf_Shdr header;

		if (at >= sections.count || !gelf_getshdr(section, &header))
			continue;
		sections.items[at].start = header.sh_addr;
		sections.items[at].end = header.sh_addr + header.sh_size;
		sections.items[at].has_code = header.sh_flags & SHF_EXECINSTR;
	}
	return sections;
}

// Functions first, then how widely the name is known.
static uint8_t rate(const GElf_Sym *symbol)
{
	uint8_t rating = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ? 4 : 0;

	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return rating;
	case STB_WEAK:
		return rating + 1;
	default:
		return rating + 2;
	}
}

// STT_NOTYPE is what assembly leaves: a function if it is in code.
static bool is_function(const GElf_Sym *symbol, const struct section *section)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE:
		return section->has_code;
	default:
		return false;
	}
}

static void add_symbol(struct symtab *symtab, const struct sections *sections,
		       const GElf_Sym *symbol, const char *name, const char *source)
{
	uint32_t section_index = symbol->st_shndx;
	const struct section *section;
	struct symtab_entry *entry;

	if (section_index == SHN_UNDEF || section_index >= sections->count)
		return;
	section = &sections->items[section_index];
	if (!is_function(symbol, section) || !name || !*name)
		return;
	// Absolute symbols, and those of a section that was left out, name no code of this file.
	if (symbol->st_value < section->start || symbol->st_value >= section->end)
		return;
	entry = MEM_ADD(symtab->entries, symtab->count, symtab->capacity);
	entry->start = symbol->st_value;
	entry->sized = symbol->st_size > 0;
	entry->end = section->end; // for a symbol without a size; symtab_build shortens it
	if (entry->sized && symbol->st_size < section->end - symbol->st_value)
		entry->end = symbol->st_value + symbol->st_size;
	entry->name = name;
	entry->source = GELF_ST_BIND(symbol->st_info) == STB_LOCAL ? source : NULL;
	entry->preference = rate(symbol);
	ASSERT(entry->start < entry->end && entry->end <= section->end);
}

static void add_section(struct symtab *symtab, const struct object *object,
			const struct sections *sections, Elf_Data *data, const GElf_Shdr *header)
{
	size_t count = data->d_size / header->sh_entsize;
	const char *source = NULL;

	for (size_t i = 1; i < count && i < INT32_MAX; i++) {
		const char *name;
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		name = elf_strptr(object->elf, header->sh_link, symbol.st_name);
		// The local symbols of a source file follow its name.
		if (GELF_ST_TYPE(symbol.st_info) == STT_FILE)
			source = name && *name ? name : NULL;
		else
			add_symbol(symtab, sections, &symbol, name, source);
	}
}

size_t symtab_add(struct symtab *symtab, const struct object *object, uint32_t type)
{
	struct sections sections = read_sections(object);
	size_t before = symtab->count;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(object->elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != type ||
		    header.sh_entsize == 0)
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			add_section(symtab, object, &sections, data, &header);
	}
	mem_free(sections.items);
	ASSERT(symtab->count >= before);
	return symtab->count - before;
}

// By address, then by range, then best name first.
SORT_ORDER(compare_entries, struct symtab_entry, SORT_RISES(start), SORT_FALLS(sized),
	   SORT_RISES(end), SORT_RISES(preference), places_compare_names(one->name, other->name))

// Symbols without a size end where the next symbol begins, and those that are another name of one
// with a size end with that one: beyond it is code that the table has no name for.
// From the end on, so that the next larger address is always known. Several at one address all end
// at the same place.
static void shorten_unsized(struct symtab *symtab)
{
	uint64_t next = UINT64_MAX, start = 0, sized_end = 0;

	for (size_t i = symtab->count; i-- > 0;) {
		struct symtab_entry *entry = &symtab->entries[i];

		if (i + 1 < symtab->count && symtab->entries[i + 1].start > entry->start)
			next = symtab->entries[i + 1].start;
		if (!entry->sized && next < entry->end)
			entry->end = next;
	}
	// With a size come before those without.
	for (size_t i = 0; i < symtab->count; i++) {
		struct symtab_entry *entry = &symtab->entries[i];

		if (entry->start != start)
			sized_end = 0;
		start = entry->start;
		if (entry->sized && entry->end > sized_end)
			sized_end = entry->end;
		else if (!entry->sized && sized_end && sized_end < entry->end)
			entry->end = sized_end;
	}
}

void symtab_build(struct symtab *symtab)
{
	struct nest_range *ranges;

	if (symtab->count == 0 || symtab->count > UINT32_MAX)
		return;
	qsort(symtab->entries, symtab->count, sizeof *symtab->entries, compare_entries);
	shorten_unsized(symtab);
	// A size says more than where the next symbol begins: one with a size is the deeper one, so
	// it wins.
	ranges = mem_alloc(symtab->count, sizeof *ranges);
	for (size_t i = 0; i < symtab->count; i++) {
		const struct symtab_entry *entry = &symtab->entries[i];

		ranges[i] = (struct nest_range){ entry->start, entry->end, entry->sized ? 1 : 0,
						 (uint32_t)i };
	}
	nest_build(&symtab->nest, ranges, symtab->count);
	mem_free(ranges);
}

void symtab_fini(struct symtab *symtab)
{
	nest_fini(&symtab->nest);
	mem_free(symtab->entries);
	*symtab = (struct symtab){ 0 };
}

const char *symtab_find(const struct symtab *symtab, uint64_t offset, const char **source)
{
	uint32_t entry;

	ASSERT(symtab->nest.count == 0 || symtab->entries != NULL); // symtab_build was called
	*source = NULL;
	if (!nest_find(&symtab->nest, offset, &entry))
		return NULL;
	ASSERT(entry < symtab->count);
	*source = symtab->entries[entry].source;
	return symtab->entries[entry].name;
}
