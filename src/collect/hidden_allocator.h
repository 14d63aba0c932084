// hidden_allocator: files with an allocator inside that nothing names, so that its calls are not
// seen.
//
// Such are programs and libraries that were linked with jemalloc or mimalloc and stripped
// (Rust's programs and node's native modules often are), or in which the functions have names that
// are not known (jemalloc can be built with any prefix). The texts that these allocators complain
// with are there still. For example, a file that takes mmap, munmap and madvise from its C library
// and has "<jemalloc>: " among its constants has jemalloc.
#pragma once

#include "base/map.h"
#include "base/str.h"

enum { HIDDEN_ALLOCATOR_KINDS = 3 };

// In one file of a process.
struct hidden_allocator {
	const char *what; // "jemalloc"
	bool symbols;     // the file is not stripped: its functions have other names
	char *path;       // for us
	char *name;       // for the process; "": its executable
};

// Those of one process image.
struct hidden_allocator_list {
	struct hidden_allocator *list;
	size_t count, capacity;
	struct str entered; // names, each between line ends: what is in there is seen all the same
};

void hidden_allocator_fini(struct hidden_allocator_list *list); // accepts { 0 }

// The process has mapped a file. Each is looked at once: `known` has what was found, of all
// processes, by a number that is made of path, size and time.
void hidden_allocator_look(struct hidden_allocator_list *list, struct map *known, const char *path,
			   const char *name, uint64_t size_bytes, uint64_t mtime_ns);

// That file's allocator is entered all the same: its symbols or a debug file name its functions.
void hidden_allocator_enter(struct hidden_allocator_list *list, const char *name);
bool hidden_allocator_is_entered(const struct hidden_allocator_list *list, const char *name);

// Which allocator is in that file and exports no malloc: jemalloc, mimalloc, tcmalloc; or -1.
// `symbols` becomes whether the file has a table of all symbols.
int hidden_allocator_in(const char *path, bool *symbols);
