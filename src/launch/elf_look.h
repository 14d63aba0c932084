// elf_look: the few facts of an ELF file that decide whether its memory calls can be seen.
//
// For files that anybody may have made, read by libelf: every offset and count is checked against
// the size of the file, and a table of more than ELF_LOOK_BYTES_MAX is not read.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ELF_LOOK_BYTES_MAX = 256 << 20 };

struct elf_look {
	bool elf;         // it is one, of either class, little-endian, and executable or shared
	uint8_t bits;     // 64 or 32
	uint16_t machine; // e_machine
	bool interpreter; // it asks for a dynamic loader (PT_INTERP)
	bool musl;        // which is musl's
	bool is_library;  // it has a SONAME, as ld.so has, which can be run too
	bool needs_asan;  // the shared runtime of AddressSanitizer is among what it needs
};

// What `fd` holds; all false if it is no ELF file or cannot be read. The descriptor stays the
// caller's.
struct elf_look elf_look_at(int fd);
