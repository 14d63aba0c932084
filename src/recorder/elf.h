// elf: the parts of a loaded ELF file that we read (System V ABI, gABI chapter 4 and 5), as files
// of our own class have them.
//
// Sizes are those of the class that the recorder is built for. A file of the other class is not
// read by it; the collector's readers know both.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What is as wide as an address: 8 bytes, or 4.
typedef uintptr_t elf_word;

// The file's first bytes. `program_at` and `section_at` are offsets in the file; entries have the
// sizes that it says, which may be more than our structs'.
struct elf_header {
	uint8_t identity[16]; // "\177ELF", class, order of bytes, …
	uint16_t type, machine;
	uint32_t version;
	// Where the program begins, and where the tables of segments and of sections are in the
	// file.
	elf_word entry, program_at, section_at;
	uint32_t flags;
	// Bytes of this struct and of an entry of each table, how many entries they have, and which
	// section has the sections' names.
	uint16_t header_size, program_size, program_count;
	uint16_t section_size, section_count, section_names;
};

// The two classes have the same fields in another order.
#ifdef __x86_64__

struct elf_program {
	uint32_t type, flags;
	elf_word offset, address, physical, file_size, memory_size, align;
};

struct elf_symbol {
	uint32_t name;
	uint8_t info;
	uint8_t other;
	uint16_t section;
	elf_word value, size;
};

#else

struct elf_program {
	uint32_t type;
	elf_word offset, address, physical, file_size, memory_size;
	uint32_t flags;
	elf_word align;
};

struct elf_symbol {
	uint32_t name;
	elf_word value, size;
	uint8_t info;
	uint8_t other;
	uint16_t section;
};

#endif

// In the file; mostly not in memory. `name` is a place in the section of names, `offset` and `size`
// are bytes of the file, and `address` is where it is in memory before it is moved; 0: it is not
// there.
struct elf_section {
	uint32_t name, type;
	elf_word flags, address, offset, size;
	uint32_t link, info;
	elf_word align, entry_size;
};

// Entries of the dynamic section, and of the auxiliary vector: pairs, of which the last has the tag
// 0. What a value is, an address or a number, its tag says.
struct elf_pair {
	elf_word tag, value;
};

enum elf_program_type {
	ELF_LOAD = 1,              // it is mapped
	ELF_DYNAMIC = 2,           // pairs for the dynamic linker
	ELF_INTERPRETER = 3,       // the path of that
	ELF_NOTE = 4,              // the build-id, among others
	ELF_HEADERS = 6,           // these headers themselves, in memory
	ELF_EH_FRAME = 0x6474e550, // .eh_frame_hdr: a table of the unwinding rules
	ELF_RELRO = 0x6474e552,    // read only, once it is relocated
};

// A program header's flags.
enum { ELF_EXECUTABLE = 1, ELF_WRITABLE = 2, ELF_READABLE = 4 };

enum elf_section_type {
	ELF_SECTION_BITS = 1,            // what the program itself brings: code, data
	ELF_SECTION_UNWIND = 0x70000001, // what some linkers call .eh_frame's
};

// A section's flags.
enum { ELF_SECTION_ALLOCATED = 2, ELF_SECTION_CODE = 4 };
