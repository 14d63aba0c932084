// pe: a Windows image (.exe, .dll) as a file: sections, directories, and what identifies it.
//
// Reads bytes and nothing else, so it works the same on every system. The file is untrusted: an
// address leads to bytes only where a section has them.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Numbers as the format has them. Of the 16 directories (RVA and size each) these are read.
enum {
	PE_EXPORTS = 0, // directories
	PE_IMPORTS = 1,
	PE_EXCEPTIONS = 3,
	PE_RELOCATIONS = 5,
	PE_DEBUG = 6,
	PE_DIRECTORIES = 16,
	PE_MACHINE_X86 = 0x14c,
	PE_MACHINE_X64 = 0x8664,
};

// A part of the image. A section may be larger in memory than in the file: the rest is zeros
// (.bss).
struct pe_section {
	const char *name; // not terminated if name_length says so
	size_t name_length;
	uint32_t rva;
	uint32_t size_bytes;  // in memory
	const uint8_t *bytes; // in the file; NULL: it has none there
	uint32_t bytes_count;
	bool code;
};

// { 0 } is an image of which nothing is known: no section, no symbol, no PDB. All pointers but
// `sections` and `pdb` lead into `bytes`.
struct pe {
	const uint8_t *bytes; // borrowed
	size_t size_bytes;
	bool is_64, is_dll;
	uint16_t machine;
	uint64_t base; // address that it was linked for
	uint32_t image_bytes, timestamp, checksum;
	uint32_t entry; // RVA where it begins to run; 0: nowhere
	struct pe_section *sections;
	size_t sections_count;
	struct {
		uint32_t rva, size_bytes;
	} directories[PE_DIRECTORIES];
	const uint8_t *symbols; // the COFF symbol table, of 18 bytes each; NULL: none
	size_t symbols_count;
	const uint8_t *strings; // the texts after it, from its length on
	size_t strings_bytes;
	// What leads to the PDB.
	bool has_codeview;
	uint8_t guid[16];
	uint32_t age;
	char *pdb; // owned; path of the PDB as the linker wrote it; NULL: none
};

// `bytes` are borrowed. False: not a PE image, or one whose headers are cut.
// Costs a look at each header; nothing is copied but the path of the PDB.
bool pe_open(struct pe *pe, const uint8_t *bytes, size_t size_bytes, struct err *err);
void pe_close(struct pe *pe); // accepts { 0 }

// The section that `rva` is in, or NULL.
const struct pe_section *pe_section_at(const struct pe *pe, uint32_t rva);

// The section of that name, or NULL.
const struct pe_section *pe_section_named(const struct pe *pe, const char *name);

// The bytes at `rva` if the file has all `size_bytes` of them, else NULL; and how many there are
// up to the end of what the file has of its section.
const uint8_t *pe_at(const struct pe *pe, uint32_t rva, size_t size_bytes);
const uint8_t *pe_rest(const struct pe *pe, uint32_t rva, size_t *size_bytes);

// The text at `rva`, or NULL if it does not end.
const char *pe_text(const struct pe *pe, uint32_t rva);

// The text at `offset` of the COFF string table, or NULL.
const char *pe_string(const struct pe *pe, uint32_t offset);
