// elf_file: the beginning of an ELF file of either class that is not loaded.
//
// The recorder looks into a file before it is executed or mapped: which class it is of, where its
// segments go. It reads the first 1,024 bytes and no more; that has the header, and program headers
// where linkers put them. The files are from anybody: what is further than what was read is 0.
//
//     fill bytes and size; elf_file_init
//       class NULL?          not ELF: nothing else may be asked
//       elf_file_segment     0, 1, 2 … until 0
//       elf_file_number      fields of it, by the offsets of the class
#pragma once

#include "recorder/elf.h"
#include "recorder/text.h"

// Bytes that are read; where the byte is that says the class (2: 64 bits); and how many bytes a
// file has at least to be taken for one.
enum { ELF_FILE_HEAD_BYTES = 1024, ELF_FILE_CLASS_AT = 4, ELF_FILE_HEADER_BYTES = 64 };

// What is where in the headers of a file of either class: offsets, and the bytes of a program
// header.
struct elf_file_class {
	uint32_t bits;
	uint32_t program_at, program_count_at, program_bytes; // in the header
	uint32_t offset_at, address_at, size_at;              // in a program header
};

static const struct elf_file_class elf_file_classes[] = {
	{ .bits = 64,
	  .program_at = 32,
	  .program_count_at = 56,
	  .program_bytes = 56,
	  .offset_at = 8,
	  .address_at = 16,
	  .size_at = 32 },
	{ .bits = 32,
	  .program_at = 28,
	  .program_count_at = 44,
	  .program_bytes = 32,
	  .offset_at = 4,
	  .address_at = 8,
	  .size_at = 16 },
};

// Filled by the caller, on its stack.
struct elf_file {
	uint8_t bytes[ELF_FILE_HEAD_BYTES];
	size_t size;                        // bytes that could be read
	const struct elf_file_class *class; // NULL: it is no ELF file
};

// After bytes and size were filled.
static inline void elf_file_init(struct elf_file *file)
{
	file->class = NULL;
	if (file->size >= ELF_FILE_HEADER_BYTES && memcmp(file->bytes, "\177ELF", 4) == 0)
		file->class = &elf_file_classes[file->bytes[ELF_FILE_CLASS_AT] == 2 ? 0 : 1];
}

// A number as wide as an address of that class, at offset `at` of the file. 0 where that is not
// within what was read.
static inline uint64_t elf_file_number(const struct elf_file *file, uint64_t at)
{
	uint32_t bytes = file->class->bits / 8;
	uint64_t value = 0;

	if (at <= file->size && bytes <= file->size - at)
		memcpy(&value, file->bytes + at, bytes);
	return value;
}

// Where the program header of that number (from 0) is, and its type. 0: there is none, or it
// is further than we look.
static inline uint64_t elf_file_segment(const struct elf_file *file, uint16_t number,
					uint32_t *type)
{
	uint64_t at = elf_file_number(file, file->class->program_at) +
		      (uint64_t)number * file->class->program_bytes;
	uint16_t count;

	// It is within what was read, as elf_file_init has seen.
	memcpy(&count, file->bytes + file->class->program_count_at, sizeof(count));
	if (number >= count || at > file->size || file->class->program_bytes > file->size - at)
		return 0;
	memcpy(type, file->bytes + at, sizeof(*type));
	return at;
}
