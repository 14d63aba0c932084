// elf64: the parts of a loaded ELF file that we read (System V ABI, gABI chapter 4 and 5).
#ifndef RECORDER_ELF64_H
#define RECORDER_ELF64_H

#include <stdint.h>

struct elf64_header {
	uint8_t identity[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, program_at, section_at;
	uint32_t flags;
	uint16_t header_size, program_size, program_count;
};

struct elf64_program {
	uint32_t type, flags;
	uint64_t offset, address, physical, file_size, memory_size, align;
};

enum elf64_program_type {
	ELF64_LOAD = 1,
	ELF64_DYNAMIC = 2,
	ELF64_INTERPRETER = 3,
	ELF64_NOTE = 4,
	ELF64_HEADERS = 6,
	ELF64_EH_FRAME = 0x6474e550,
};

enum { ELF64_EXECUTABLE = 1 }; // a program header's flags

#endif
