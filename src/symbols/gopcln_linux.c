// The table is a header, and five parts that it says the beginning of:
//
//     functions   {entry, where its record is}, 4 bytes each, sorted by entry; a last entry alone
//                 is where code ends. Entries count from where Go's code begins. Records are here
//     names       texts that end with 0
//     units       a number for each file of each compiled unit: where its name is in `files`
//     files       texts that end with 0
//     values      tables by address: {change of the value, bytes of code}, each a number of 7 bits
//                 a byte. The first value is -1; a change of 0 that is not the first ends a table
//
// For example a function at 0x100 whose lines are (zigzag) 22 8, 2 4, 0: line 10 (-1 + 11) up to
// 0x108, line 11 up to 0x10c.
//
// No length, place or number is believed: all are read by gopcln_read, which knows the end.
#include "symbols/gopcln.h"

#include "base/mem.h"

#include <string.h>

enum {
	HEADER_BYTES = 8,     // before the numbers of the header, which are as wide as an address
	TEXT_AT = 24,         // where in the header is where code begins
	TABLE_ALIGN = 8,      // Go has 32
	ENTRY_BYTES = 8,      // of a function
	VALUES_MAX = 1 << 20, // of one function
	INLINED = 2,          // the table of values that says what was inlined
};

static const uint32_t of_go_18 = 0xfffffff0, of_go_20 = 0xfffffff1, no_file = 0xffffffff;

// Places of parts are counted from the table's beginning.
struct gopcln {
	const uint8_t *bytes; // borrowed
	size_t size;
	uint64_t text; // where Go's code begins
	uint64_t names, units, files, values, functions;
	uint64_t count;   // of functions
	uint32_t quantum; // bytes of code for each that a table of values counts
	uint32_t record_bytes;
};

// A field of a function's record, in bytes from its beginning.
enum field {
	FIELD_NAME = 4,
	FIELD_FILE = 20,
	FIELD_LINE = 24,
	FIELD_TABLES = 28, // how many there are after the record
	FIELD_UNIT = 32,
};

static bool gopcln_read(const struct gopcln *gopcln, uint64_t at, void *to, size_t bytes)
{
	if (at > gopcln->size || gopcln->size - at < bytes)
		return false;
	memcpy(to, gopcln->bytes + at, bytes);
	return true;
}

// 0 where there is none.
static uint32_t gopcln_number(const struct gopcln *gopcln, uint64_t at)
{
	uint32_t number;

	return gopcln_read(gopcln, at, &number, sizeof number) ? number : 0;
}

// The text at `at`, or NULL.
static const char *gopcln_text(const struct gopcln *gopcln, uint64_t at)
{
	const uint8_t *text = gopcln->bytes + at;

	if (at >= gopcln->size || !*text || !memchr(text, 0, gopcln->size - at))
		return NULL;
	return (const char *)text;
}

// A number of 7 bits a byte; *at is after it. False: it does not end.
static bool gopcln_varint(const struct gopcln *gopcln, uint64_t *at, uint32_t *value)
{
	*value = 0;
	for (uint32_t shift = 0; shift < 32 && *at < gopcln->size; shift += 7) {
		uint8_t byte = gopcln->bytes[(*at)++];

		*value |= (uint32_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

// The value at `address` in the table at `table` of `values`; -1: there is none.
static int32_t gopcln_value(const struct gopcln *gopcln, uint32_t table, uint64_t entry,
			    uint64_t address)
{
	uint64_t at = gopcln->values + table, end = entry;
	uint32_t value = UINT32_MAX, change, bytes;

	if (table == 0)
		return -1;
	for (uint32_t i = 0; i < VALUES_MAX; i++) {
		if (!gopcln_varint(gopcln, &at, &change) || (change == 0 && i > 0) ||
		    !gopcln_varint(gopcln, &at, &bytes))
			return -1;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		end += (uint64_t)bytes * gopcln->quantum;
		if (address < end)
			return (int32_t)value;
	}
	return -1;
}

// What is at `at` in memory when the program was loaded at 0: the file has 0 there where it can be
// loaded anywhere.
static uint64_t gopcln_relocated(const struct object *object, uint64_t at)
{
	const Elf_Data *data = object_find_data(object, ".rela.dyn");
	GElf_Rela rela;

	for (int i = 0; data && gelf_getrela((Elf_Data *)(uintptr_t)data, i, &rela); i++)
		if (rela.r_offset == at)
			return (uint64_t)rela.r_addend;
	return 0;
}

// Whether a table begins with these bytes, which are at `address`. All of *gopcln is set.
static bool gopcln_begins(struct gopcln *gopcln, const struct object *object, const uint8_t *bytes,
			  size_t size, uint64_t address)
{
	uint64_t words[8];
	uint32_t magic;

	*gopcln = (struct gopcln){ .bytes = bytes, .size = size };
	magic = gopcln_number(gopcln, 0);
	if ((magic != of_go_18 && magic != of_go_20) ||
	    !gopcln_read(gopcln, HEADER_BYTES, words, sizeof words) || bytes[7] != sizeof *words)
		return false;
	for (size_t i = 3; i < sizeof words / sizeof *words; i++)
		if (words[i] > size)
			return false;
	gopcln->quantum = bytes[6];
	gopcln->count = words[0];
	gopcln->text = words[2];
	gopcln->names = words[3];
	gopcln->units = words[4];
	gopcln->files = words[5];
	gopcln->values = words[6];
	gopcln->functions = words[7];
	gopcln->record_bytes = magic == of_go_18 ? 40 : 44;
	if (gopcln->count > (size - gopcln->functions) / ENTRY_BYTES)
		return false;
	if (gopcln->text == 0)
		gopcln->text = gopcln_relocated(object, address + TEXT_AT);
	return true;
}

// Where gcc links, the section is a part of .data.rel.ro.
struct gopcln *gopcln_open(const struct object *object)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						".data.rel.ro" };
	struct gopcln gopcln, *made;
	GElf_Shdr header;

	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		Elf_Scn *section = object_find_section(object, sections[i]);
		const Elf_Data *data = object_find_data(object, sections[i]);

		if (!section || !gelf_getshdr(section, &header) || !data || !data->d_buf)
			continue;
		for (uint64_t at = 0; at < data->d_size; at += TABLE_ALIGN) {
			if (!gopcln_begins(&gopcln, object, (const uint8_t *)data->d_buf + at,
					   data->d_size - at, header.sh_addr + at))
				continue;
			made = mem_alloc(1, sizeof *made);
			*made = gopcln;
			return made;
		}
	}
	return NULL;
}

void gopcln_close(struct gopcln *gopcln)
{
	mem_free(gopcln);
}

// The last function that begins at `offset` or before it; the count of them: none.
static uint64_t gopcln_search(const struct gopcln *gopcln, uint64_t offset)
{
	uint64_t low = 0, high = gopcln->count;

	// All before `low` begin at it or before it, none from `high` on does.
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (gopcln_number(gopcln, gopcln->functions + middle * ENTRY_BYTES) <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? low - 1 : gopcln->count;
}

static void gopcln_line(const struct gopcln *gopcln, uint64_t record, uint64_t entry,
			uint64_t address, struct place *place)
{
	uint32_t tables = gopcln_number(gopcln, record + FIELD_TABLES), at;
	int32_t file, line;

	// The line of what was inlined is none of this function's.
	at = tables > INLINED ? gopcln_number(gopcln, record + gopcln->record_bytes + INLINED * 4)
			      : 0;
	if (gopcln_value(gopcln, at, entry, address) >= 0)
		return;
	file = gopcln_value(gopcln, gopcln_number(gopcln, record + FIELD_FILE), entry, address);
	line = gopcln_value(gopcln, gopcln_number(gopcln, record + FIELD_LINE), entry, address);
	if (file < 0 || line <= 0)
		return;
	at = gopcln_number(gopcln,
			   gopcln->units + ((uint64_t)gopcln_number(gopcln, record + FIELD_UNIT) +
					    (uint32_t)file) *
						   4);
	if (at == no_file)
		return;
	place->file = gopcln_text(gopcln, gopcln->files + at);
	place->line = place->file ? (uint32_t)line : 0;
}

bool gopcln_find(const struct gopcln *gopcln, uint64_t address, struct place *place)
{
	uint64_t offset = address - gopcln->text, at, record, entry;
	const char *name;

	ASSERT(place->function == NULL);
	if (address < gopcln->text)
		return false;
	at = gopcln_search(gopcln, offset);
	if (at == gopcln->count ||
	    offset >= gopcln_number(gopcln, gopcln->functions + (at + 1) * ENTRY_BYTES))
		return false;
	entry = gopcln->text + gopcln_number(gopcln, gopcln->functions + at * ENTRY_BYTES);
	record =
		gopcln->functions + gopcln_number(gopcln, gopcln->functions + at * ENTRY_BYTES + 4);
	name = gopcln_text(gopcln, gopcln->names + gopcln_number(gopcln, record + FIELD_NAME));
	if (!name)
		return false;
	place->function = name;
	gopcln_line(gopcln, record, entry, address, place);
	return true;
}
