// Names of code from tables that know different amounts, so each name has a rank: the best one at
// an address is kept. For example, with "__malloc", "_malloc" and "malloc_dbg" all at 0x1010 in
// the COFF table of a 64-bit image: of equal rank and linkage the one with fewer underscores at
// its beginning is kept, malloc_dbg; of as many, the shorter.
//
// On x86 the compiler's "_f" is f and "@f@8" is f@8; an export bears its own name. A name whose
// end is not known reaches to the next one only if the table lists local functions, too: else what
// is between may be another function, that was stripped.
#include "symbols/pe_names.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "base/str.h"
#include "symbols/places.h"
#include "trace/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
	SYMBOL_BYTES = 18,
	CLASS_EXTERNAL = 2,
	CLASS_STATIC = 3,
	EXPORTS_MAX = 65536, // an ordinal has 16 bits
};

// One name. While names are added there may be several at one address, in any order; after
// pe_names_build there is one, and they rise.
struct pe_names_entry {
	uint32_t rva;
	uint32_t end; // 0: not known
	const char *name;
	uint8_t rank;
	bool local;
};

void pe_names_init(struct pe_names *names, const struct pe *pe)
{
	*names = (struct pe_names){ 0 };
	pe_bounds_init(&names->bounds, pe);
}

void pe_names_fini(struct pe_names *names)
{
	uint64_t rva, text;
	size_t at = 0;

	while (map_next(&names->unnamed, &at, &rva, &text))
		mem_free((char *)(uintptr_t)text);
	map_fini(&names->unnamed);
	for (size_t i = 0; i < names->owned_count; i++)
		mem_free(names->owned[i]);
	MEM_FREE(names->owned, names->entries);
	pe_bounds_fini(&names->bounds);
}

// On x86 a C compiler writes _f, or @f@8 for one convention; the linker exports f. What stands
// behind a name is cut off where it is shown.
static const char *plain(const struct pe_names *names, const char *name)
{
	if (names->bounds.pe->machine != PE_MACHINE_X86 || name[0] == 0 || name[1] == 0)
		return name;
	return name[0] == '_' || (name[0] == '@' && strchr(name + 1, '@')) ? name + 1 : name;
}

static struct pe_names_entry *add(struct pe_names *names, uint32_t rva, const char *name,
				  enum pe_names_rank rank)
{
	struct pe_names_entry *entry;

	ASSERT(rank <= PE_NAMES_EXPORT && name && names->bounds.pe);
	entry = MEM_ADD(names->entries, names->count, names->capacity);
	*entry = (struct pe_names_entry){ .rva = rva, .name = name, .rank = (uint8_t)rank };
	return entry;
}

void pe_names_add(struct pe_names *names, uint32_t rva, uint32_t end, const char *name,
		  enum pe_names_rank rank)
{
	if (*name)
		add(names, rva, rank == PE_NAMES_EXPORT ? name : plain(names, name), rank)->end =
			end;
}

// A symbol's name: eight characters in place, or a place in the string table.
static const char *symbol_name(struct pe_names *names, const uint8_t *symbol)
{
	char *copy;

	if (bytes_get_u32(symbol) == 0)
		return pe_string(names->bounds.pe, bytes_get_u32(symbol + 4));
	if (symbol[7] == 0)
		return (const char *)symbol;
	// Eight characters fill the field and have no NUL after them: only these need a copy.
	copy = mem_copy_bytes(symbol, 8);
	*MEM_ADD(names->owned, names->owned_count, names->owned_capacity) = copy;
	return copy;
}

// A symbol of 18 bytes: name (0), value (8), section (12, from 1), type (14), class (16), how many
// records of further information follow it (17). The type's second half-byte is 2 for a function.
static bool add_symbol(struct pe_names *names, const uint8_t *symbol)
{
	const struct pe *pe = names->bounds.pe;
	uint32_t value = bytes_get_u32(symbol + 8);
	uint16_t number = bytes_get_u16(symbol + 12);
	bool function = (bytes_get_u16(symbol + 14) & 0x30) == 0x20;
	const struct pe_section *section;
	const char *name;

	if (number == 0 || number > pe->sections_count ||
	    (symbol[16] != CLASS_EXTERNAL && symbol[16] != CLASS_STATIC))
		return false;
	section = &pe->sections[number - 1];
	if (!section->code || value >= section->size_bytes)
		return false;
	name = symbol_name(names, symbol);
	// Sections have symbols, too, and .L is a place within a function.
	if (!name || !*name || (!function && *name == '.'))
		return false;
	add(names, section->rva + value, plain(names, name),
	    function ? PE_NAMES_COFF : PE_NAMES_LABEL)
		->local = symbol[16] == CLASS_STATIC;
	return true;
}

size_t pe_names_add_coff(struct pe_names *names)
{
	const struct pe *pe = names->bounds.pe;
	size_t count = 0;

	for (size_t i = 0; i < pe->symbols_count;) {
		const uint8_t *symbol = pe->symbols + i * SYMBOL_BYTES;

		count += add_symbol(names, symbol);
		// Records of further information are not symbols.
		i += 1 + (size_t)symbol[17];
	}
	return count;
}

void pe_names_add_exports(struct pe_names *names)
{
	const struct pe *pe = names->bounds.pe;
	uint32_t rva = pe->directories[PE_EXPORTS].rva;
	uint32_t size = pe->directories[PE_EXPORTS].size_bytes;
	const uint8_t *directory = rva ? pe_at(pe, rva, 40) : NULL;
	const uint8_t *functions, *texts, *ordinals;
	uint32_t functions_count, texts_count;

	if (!directory)
		return;
	// Three tables: addresses by ordinal, names, and for each name its ordinal. So the i-th
	// name is of functions[ordinals[i]].
	functions_count = bytes_get_u32(directory + 20);
	texts_count = bytes_get_u32(directory + 24);
	if (functions_count > EXPORTS_MAX || texts_count > EXPORTS_MAX)
		return;
	functions = pe_at(pe, bytes_get_u32(directory + 28), 4 * (size_t)functions_count);
	texts = pe_at(pe, bytes_get_u32(directory + 32), 4 * (size_t)texts_count);
	ordinals = pe_at(pe, bytes_get_u32(directory + 36), 2 * (size_t)texts_count);
	if (!functions || !texts || !ordinals)
		return;
	for (uint32_t i = 0; i < texts_count; i++) {
		uint32_t ordinal = bytes_get_u16(ordinals + 2 * (size_t)i);
		uint32_t target = ordinal < functions_count ? bytes_get_u32(functions + 4 * ordinal)
							    : 0;
		const struct pe_section *section = pe_section_at(pe, target);
		const char *name = pe_text(pe, bytes_get_u32(texts + 4 * (size_t)i));

		// Within the directory it is the name of another library's function.
		if (section && section->code && target - rva >= size && name)
			pe_names_add(names, target, 0, name, PE_NAMES_EXPORT);
	}
}

// By address, then the best name first.
SORT_ORDER(compare_entries, struct pe_names_entry, SORT_RISES(rva), SORT_RISES(rank),
	   SORT_RISES(local), places_compare_names(one->name, other->name))

void pe_names_build(struct pe_names *names)
{
	size_t count = 0;

	if (names->count == 0)
		return;
	qsort(names->entries, names->count, sizeof *names->entries, compare_entries);
	for (size_t i = 0; i < names->count; i++)
		names->lists_locals |= names->entries[i].local &&
				       names->entries[i].rank == PE_NAMES_COFF;
	for (size_t i = 0; i < names->count; i++)
		if (count == 0 || names->entries[i].rva != names->entries[count - 1].rva)
			names->entries[count++] = names->entries[i];
	names->count = count;
}

// The last entry at or before `rva`, or NULL.
static const struct pe_names_entry *last_before(const struct pe_names *names, uint32_t rva)
{
	size_t low = RISING_UPTO(names->entries, names->count, rva, rva);

	return low > 0 ? &names->entries[low - 1] : NULL;
}

// Does it reach to the next one? Only in a table that lists all functions: one from which the local
// ones were stripped does not.
static bool is_complete(const struct pe_names *names, const struct pe_names_entry *entry)
{
	return names->lists_locals &&
	       (entry->rank == PE_NAMES_COFF || entry->rank == PE_NAMES_LABEL);
}

// Whether another one of its table follows in its section. Behind the last one may be anything.
static bool is_followed(const struct pe_names *names, const struct pe_names_entry *entry)
{
	const struct pe_names_entry *next = entry + 1;
	const struct pe_section *section = pe_section_at(names->bounds.pe, entry->rva);

	return section && next < names->entries + names->count &&
	       next->rva - section->rva < section->size_bytes;
}

// The name where .pdata knows the function's bounds. Only a complete table has names for places
// within it, where several functions share an entry.
static const char *find_bounded(const struct pe_names *names, uint32_t rva, uint32_t start,
				uint32_t function)
{
	const struct pe_names_entry *entry = last_before(names, rva);

	if (entry && entry->rva >= start && (entry->rva == start || is_complete(names, entry)))
		return entry->name;
	entry = last_before(names, start);
	if (!entry || entry->rva != start)
		entry = last_before(names, function);
	return entry && (entry->rva == function || entry->rva == start) ? entry->name : NULL;
}

const char *pe_names_find(struct pe_names *names, uint32_t rva)
{
	const struct pe_names_entry *entry;
	uint32_t start, end, function;

	if (names->count == 0)
		return NULL;
	ASSERT(names->bounds.pe && names->count <= names->capacity);
	// .pdata knows the function: only a name at its beginning, or a complete table, can name
	// it.
	if (pe_bounds_find(&names->bounds, rva, &start, &end, &function))
		return find_bounded(names, rva, start, function);
	entry = last_before(names, rva);
	// Not behind the end of what .pdata knows, nor in another section.
	if (!entry || pe_bounds_find(&names->bounds, entry->rva, &start, &end, &function))
		return NULL;
	if (is_complete(names, entry) && is_followed(names, entry))
		return pe_section_at(names->bounds.pe, entry->rva) ==
				       pe_section_at(names->bounds.pe, rva)
			       ? entry->name
			       : NULL;
	// From here on the name was made for a function of unknown length (a leaf on x64, anything
	// on x86).
	if (entry->end > 0 && rva >= entry->end)
		return NULL;
	if (names->bounds.pe->sections_count == 0) // a PDB alone
		return entry->end > 0 ? entry->name : NULL;
	return rva < pe_bounds_end(&names->bounds, entry->rva) ? entry->name : NULL;
}

const char *pe_names_unnamed(struct pe_names *names, const char *module, uint32_t rva)
{
	uint32_t start, end, function = rva;
	struct str text = { 0 };
	const char *dot;
	uint64_t *slot;
	bool added;

	// All addresses of one function should have one name in a report; where .pdata does not
	// know it, each address stands for itself.
	pe_bounds_find(&names->bounds, rva, &start, &end, &function);
	slot = map_put(&names->unnamed, function, &added);
	if (added) {
		dot = strrchr(module, '.');
		str_format(&text, "%.*s!sub_%x",
			   (int)(dot && dot > module ? (size_t)(dot - module) : strlen(module)),
			   module, function);
		*slot = (uintptr_t)str_take(&text);
	}
	return (const char *)(uintptr_t)*slot;
}
