// loader_file: what has to be known of a statically linked program to bring the recorder into it,
// and of any file with an allocator inside that it does not export.
//
// Its headers and a few of its symbols; where it is stripped, those of the file of debugging
// information that its build-id leads to. For files that anybody may have made, read by libelf.
#pragma once

#include "base/str.h"

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOADER_FILE_PROGRAMS_MAX = 64, LOADER_FILE_SPANS_MAX = 256 };

// Addresses of the file, [start, end).
struct loader_file_span {
	uint64_t start, end;
};

// What was read of one file; plain data, without anything to free. Addresses are the file's own:
// where it is mapped has to be added. 0: it was not found.
struct loader_file {
	GElf_Ehdr header;
	GElf_Phdr programs[LOADER_FILE_PROGRAMS_MAX];
	size_t programs_count;
	uint64_t setup;     // the C library's function that sets threads up, or 0
	uint64_t allocates; // malloc
	// Of glibc's, or 0: what it knows of the program as an object, where a thread has its
	// restartable sequence, and how much of the room for thread-local variables is used; what
	// creates threads.
	uint64_t main_map, sequence, tls_used;
	uint64_t arena, parameters; // of glibc's malloc: main_arena and mp_
	struct loader_file_span creates;
	bool symbols;   // it has a symbol table of its own functions
	bool go;        // it was made by Go's compiler
	bool operators; // C++'s new
	bool allocator; // one with operators of its own: tcmalloc, mimalloc, jemalloc
	// Of an allocator in it (glibc's, if it is linked in; jemalloc, mimalloc), exported or not:
	// its code, in order, and two functions (0: it has none), by the file's addresses.
	struct loader_file_span inside[LOADER_FILE_SPANS_MAX];
	size_t inside_count;
	uint64_t mallocx, mi_version;
	uint8_t build_id[32];
	size_t build_id_length;
};

// Whether the recorder can be brought into the program that is open as `fd`, an ELF file without an
// interpreter: 0, or an enum note_exec, and `why` (may be NULL) says why not, in words that go on
// after "it is linked statically, and".
uint32_t loader_file_look(int fd, struct str *why);

// Fill in *file. False: it is no ELF file, or has too many program headers. The descriptor stays
// the caller's.
bool loader_file_read(int fd, struct loader_file *file);
