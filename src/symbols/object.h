// object: one ELF file, opened to be asked for names.
//
// The file is untrusted: libelf checks what it reads, we check what we do with it. It is mapped,
// and its descriptor is given back at once, so that a trace with thousands of modules does not
// run out of descriptors. Strings that come from an object stay valid until object_close.
#pragma once

#include "base/err.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stddef.h>
#include <stdint.h>

enum { OBJECT_BUILD_ID_MAX = 32 };

// Complete, so that readers of its parts (symtab, debuginfo) ask libelf and libdw themselves. None
// of the fields changes after it was opened.
struct object {
	char *path;                    // owned; what was opened
	void *bytes;                   // owned; the file's bytes, or NULL if it is mapped by libelf
	const void *mapped;            // by libelf; NULL: `bytes`
	void *unpacked;                // owned; the file's bytes where some were packed by zstd
	size_t unpacked_bytes;         // of them
	char *trouble;                 // owned; why its debug information is not read, or NULL
	Elf *elf;                      // owned
	Dwarf *dwarf;                  // owned; NULL: no debug information in this file
	uint64_t size_bytes;           // of the file
	uint64_t mtime_ns;             // 0 for bytes in memory
	uint64_t code_start, code_end; // where executable sections are
	uint8_t build_id[OBJECT_BUILD_ID_MAX];
	size_t build_id_length; // 0: it has none
};

// NULL on: cannot be opened, not a regular file, not ELF. Never waits (fifos, terminals).
struct object *object_open(const char *path, struct err *err);

// An ELF file in memory. Takes `bytes` (from mem_alloc), also on failure.
struct object *object_take_bytes(void *bytes, size_t size_bytes, const char *path, struct err *err);
void object_close(struct object *object); // NULL is allowed

// The section called `name` that has contents, or NULL.
// Goes through all sections. One without bytes in the file (SHT_NOBITS, as in a debug file) is not
// found.
Elf_Scn *object_find_section(const struct object *object, const char *name);

// The contents of that section, or NULL. Not longer than the file.
const Elf_Data *object_find_data(const struct object *object, const char *name);

// Does it have this build-id?
bool object_is(const struct object *object, const uint8_t *build_id, size_t length);

// The CRC of a whole file as .gnu_debuglink defines it. False if it cannot be read.
bool object_crc(const char *path, uint32_t *crc);
