// How a PE file begins, with the offsets that are read here (those of a file whose headers begin at
// 0x80):
//
//     0x00   "MZ", the head of a DOS program; at 0x3c: 0x80, where the rest is
//     0x80   "PE\0\0", machine, sections, time, symbol table, size of the optional header
//     0x98   the optional header: 0x10b (32 bits) or 0x20b (64), entry, base, …, directories
//            a section's header for each, 40 bytes
//
// An address in the image is an RVA, relative to its base; in the file the bytes of a section are
// elsewhere. For .text at RVA 0x1000 with its bytes at 0x400 of the file, RVA 0x1234 is byte 0x634.
#include "trace/pe.h"

#include "base/mem.h"
#include "trace/bytes.h"

#include <string.h>

enum {
	DOS_BYTES = 64,
	FILE_BYTES = 24, // signature and file header
	SECTION_BYTES = 40,
	SYMBOL_BYTES = 18,
	DEBUG_BYTES = 28, // of one entry of the debug directory
	CODEVIEW = 2,
	CODEVIEW_BYTES = 24, // "RSDS", GUID, age; the path follows
	SECTION_CODE = 0x20,
	SECTION_EXECUTES = 0x20000000,
	FILE_IS_DLL = 0x2000,
	HEADER_32_BYTES = 96, // of the optional header, before the directories
	HEADER_64_BYTES = 112,
};

// The table of symbols, and right after it the strings: their first 4 bytes are their length, those
// 4 included, so offsets below 4 name nothing. mingw writes this table, Microsoft's linker does
// not.
static void read_symbols(struct pe *pe, uint32_t at, uint32_t count)
{
	size_t left = at < pe->size_bytes ? pe->size_bytes - at : 0;
	uint32_t bytes;

	if (at == 0 || count > left / SYMBOL_BYTES)
		return;
	pe->symbols = pe->bytes + at;
	pe->symbols_count = count;
	left -= (size_t)count * SYMBOL_BYTES;
	if (left < 4)
		return;
	ASSERT(pe->symbols + (size_t)count * SYMBOL_BYTES + left == pe->bytes + pe->size_bytes);
	bytes = bytes_get_u32(pe->symbols + (size_t)count * SYMBOL_BYTES);
	pe->strings = pe->symbols + (size_t)count * SYMBOL_BYTES;
	pe->strings_bytes = bytes < left ? bytes : left;
}

const char *pe_string(const struct pe *pe, uint32_t offset)
{
	if (offset < 4 || offset >= pe->strings_bytes ||
	    !memchr(pe->strings + offset, 0, pe->strings_bytes - offset))
		return NULL;
	return (const char *)pe->strings + offset;
}

// Up to eight characters, or /N where N is a place in the string table.
static void read_section_name(const struct pe *pe, const uint8_t *header,
			      struct pe_section *section)
{
	uint32_t offset = 0;
	const char *text;

	// ".text\0\0\0", or "/4" for a name such as .debug_info that is longer than eight
	// characters.
	section->name = (const char *)header;
	while (section->name_length < 8 && header[section->name_length])
		section->name_length++;
	if (header[0] != '/' || section->name_length < 2)
		return;
	for (size_t i = 1; i < section->name_length; i++) {
		if (header[i] < '0' || header[i] > '9')
			return;
		offset = offset * 10 + header[i] - '0';
	}
	text = pe_string(pe, offset);
	if (!text)
		return;
	section->name = text;
	section->name_length = strlen(text);
}

static void read_section(const struct pe *pe, const uint8_t *header, struct pe_section *section)
{
	uint32_t raw_bytes = bytes_get_u32(header + 16), raw_at = bytes_get_u32(header + 20);
	uint32_t flags = bytes_get_u32(header + 36);

	read_section_name(pe, header, section);
	section->size_bytes = bytes_get_u32(header + 8) ? bytes_get_u32(header + 8) : raw_bytes;
	section->rva = bytes_get_u32(header + 12);
	section->code = flags & (SECTION_CODE | SECTION_EXECUTES);
	// In the file it may be longer, for the sake of alignment, or shorter: the rest is zero.
	if (raw_bytes > section->size_bytes)
		raw_bytes = section->size_bytes;
	if (raw_at == 0 || raw_at >= pe->size_bytes)
		return;
	section->bytes = pe->bytes + raw_at;
	section->bytes_count = raw_bytes < pe->size_bytes - raw_at
				       ? raw_bytes
				       : (uint32_t)(pe->size_bytes - raw_at);
}

// Where the PDB is named. Linkers may write several entries of other kinds.
static void read_codeview(struct pe *pe)
{
	uint32_t left = pe->directories[PE_DEBUG].size_bytes;
	uint32_t rva = pe->directories[PE_DEBUG].rva;

	for (; left >= DEBUG_BYTES; left -= DEBUG_BYTES, rva += DEBUG_BYTES) {
		const uint8_t *entry = pe_at(pe, rva, DEBUG_BYTES);
		const uint8_t *record;
		uint32_t bytes, at;

		if (!entry)
			return;
		bytes = bytes_get_u32(entry + 16);
		// Where it is in the file, and not in memory.
		at = bytes_get_u32(entry + 24);
		if (bytes_get_u32(entry + 12) != CODEVIEW || bytes < CODEVIEW_BYTES ||
		    at >= pe->size_bytes || bytes > pe->size_bytes - at)
			continue;
		record = pe->bytes + at;
		if (memcmp(record, "RSDS", 4) != 0)
			continue;
		pe->has_codeview = true;
		memcpy(pe->guid, record + 4, sizeof pe->guid);
		pe->age = bytes_get_u32(record + 20);
		pe->pdb = mem_copy_bytes(record + CODEVIEW_BYTES, bytes - CODEVIEW_BYTES);
		return;
	}
}

static bool cut(struct err *err)
{
	return err_set(err, ERR_FORMAT, "its headers are cut");
}

// What stands in the optional header: the bytes of it, and how many.
static bool read_header(struct pe *pe, const uint8_t *header, size_t length, struct err *err)
{
	size_t before = pe->is_64 ? HEADER_64_BYTES : HEADER_32_BYTES;
	size_t count;

	if (length < before)
		return cut(err);
	pe->entry = bytes_get_u32(header + 16);
	pe->base = pe->is_64 ? bytes_get_u64(header + 24) : bytes_get_u32(header + 28);
	pe->image_bytes = bytes_get_u32(header + 56);
	pe->checksum = bytes_get_u32(header + 64);
	// The number of directories is the last word before them, in both forms.
	count = bytes_get_u32(header + before - 4);
	if (count > PE_DIRECTORIES)
		count = PE_DIRECTORIES;
	if (count > (length - before) / 8)
		count = (length - before) / 8;
	ASSERT(count <= PE_DIRECTORIES && before + 8 * count <= length);
	for (size_t i = 0; i < count; i++) {
		pe->directories[i].rva = bytes_get_u32(header + before + 8 * i);
		pe->directories[i].size_bytes = bytes_get_u32(header + before + 8 * i + 4);
	}
	return true;
}

bool pe_open(struct pe *pe, const uint8_t *bytes, size_t size_bytes, struct err *err)
{
	const uint8_t *headers;
	size_t left, header_bytes, sections;
	uint32_t at;

	*pe = (struct pe){ .bytes = bytes, .size_bytes = size_bytes };
	if (size_bytes < DOS_BYTES || bytes[0] != 'M' || bytes[1] != 'Z')
		return err_set(err, ERR_FORMAT, "not a Windows program or library");
	at = bytes_get_u32(bytes + 60);
	if (at > size_bytes || size_bytes - at < FILE_BYTES + 2)
		return cut(err);
	headers = bytes + at;
	left = size_bytes - at - FILE_BYTES;
	if (memcmp(headers, "PE\0\0", 4) != 0)
		return err_set(err, ERR_FORMAT, "not a Windows program or library");
	pe->machine = bytes_get_u16(headers + 4);
	pe->timestamp = bytes_get_u32(headers + 8);
	sections = bytes_get_u16(headers + 6);
	header_bytes = bytes_get_u16(headers + 20);
	pe->is_dll = bytes_get_u16(headers + 22) & FILE_IS_DLL;
	// All headers are there, or it is refused. Sections' own bytes may be cut: read_section
	// looks.
	if (header_bytes > left || sections > (left - header_bytes) / SECTION_BYTES)
		return cut(err);
	switch (bytes_get_u16(headers + FILE_BYTES)) {
	case 0x10b:
		break;
	case 0x20b:
		pe->is_64 = true;
		break;
	default:
		return err_set(err, ERR_FORMAT, "not a program of 32 or 64 bits");
	}
	if (!read_header(pe, headers + FILE_BYTES, header_bytes, err))
		return false;
	read_symbols(pe, bytes_get_u32(headers + 12), bytes_get_u32(headers + 16));
	pe->sections = mem_alloc(sections + 1, sizeof *pe->sections);
	pe->sections_count = sections;
	for (size_t i = 0; i < sections; i++)
		read_section(pe, headers + FILE_BYTES + header_bytes + i * SECTION_BYTES,
			     &pe->sections[i]);
	read_codeview(pe);
	return true;
}

void pe_close(struct pe *pe)
{
	MEM_FREE(pe->sections, pe->pdb);
	*pe = (struct pe){ 0 };
}

// A few to some twenty sections: going through them is faster than anything built for it. The
// subtraction wraps, so that an RVA before the section is far outside of it.
const struct pe_section *pe_section_at(const struct pe *pe, uint32_t rva)
{
	for (size_t i = 0; i < pe->sections_count; i++)
		if (rva - pe->sections[i].rva < pe->sections[i].size_bytes)
			return &pe->sections[i];
	return NULL;
}

const struct pe_section *pe_section_named(const struct pe *pe, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < pe->sections_count; i++)
		if (pe->sections[i].name_length == length &&
		    memcmp(pe->sections[i].name, name, length) == 0)
			return &pe->sections[i];
	return NULL;
}

const uint8_t *pe_rest(const struct pe *pe, uint32_t rva, size_t *size_bytes)
{
	const struct pe_section *section = pe_section_at(pe, rva);

	if (!section || !section->bytes || rva - section->rva >= section->bytes_count)
		return NULL;
	ASSERT(section->bytes >= pe->bytes && section->bytes < pe->bytes + pe->size_bytes);
	*size_bytes = section->bytes_count - (rva - section->rva);
	return section->bytes + (rva - section->rva);
}

const uint8_t *pe_at(const struct pe *pe, uint32_t rva, size_t size_bytes)
{
	size_t left;
	const uint8_t *bytes = pe_rest(pe, rva, &left);

	return bytes && left >= size_bytes ? bytes : NULL;
}

const char *pe_text(const struct pe *pe, uint32_t rva)
{
	size_t left;
	const uint8_t *bytes = pe_rest(pe, rva, &left);

	return bytes && memchr(bytes, 0, left) ? (const char *)bytes : NULL;
}
