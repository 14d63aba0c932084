// object_file: the file that an object was loaded from: its sections, of which most are not in
// memory, and its symbol table, or that of a file of debugging information that belongs to it.
//
// Read by system calls of ours: not in a sealed process, and not where the file is gone or is
// another one by now.
#pragma once

#include "recorder/elf.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scope_object;

enum { OBJECT_FILE_AT_ONCE = 16 }; // sections

// An open file: its header, and some of its sections at a time. On the caller's stack; one thread.
struct object_file {
	int fd;
	uint64_t bytes; // of the file; 0: not known
	struct elf_header elf;
	struct elf_section names; // the one that has the sections' names
	uint32_t first;           // of these sections
	struct elf_section sections[OBJECT_FILE_AT_ONCE];
};

// Open the object's file, if it begins as the object in memory does. False: it cannot be had. The
// descriptor is ours until object_file_close: it must not outlast the call that opened it.
HIDDEN bool object_file_open(struct object_file *file, const struct scope_object *object);
HIDDEN void object_file_close(struct object_file *file);

// Bytes of the file. False: it ends before.
HIDDEN bool object_file_read(const struct object_file *file, uint64_t at, void *out, size_t bytes);

// The section of that number, from 0. NULL: there are no more of them. Until the next call.
HIDDEN const struct elf_section *object_file_section(struct object_file *file, uint32_t number);

// Whether the section has that name.
HIDDEN bool object_file_is_named(const struct object_file *file, const struct elf_section *section,
				 const char *name);

// A symbol table, mapped: it stays readable until object_file_forget.
struct object_symbols {
	const struct elf_symbol *symbols;
	size_t count;
	const char *names; // names_bytes of them, the last one is 0
	size_t names_bytes;
	bool debug; // a debug file's
	void *pages[2];
	size_t pages_bytes[2];
};

// The object's, where it names functions that are not exported. False: it is stripped, and no debug
// file belongs to it, neither by build-id nor by its .gnu_debuglink; or (`*stripped` is false) its
// file cannot be had.
HIDDEN bool object_file_symbols(const struct scope_object *object, struct object_symbols *symbols,
				bool *stripped);
HIDDEN void object_file_forget(struct object_symbols *symbols);
