// hidden_allocator: files with an allocator inside that nothing names, so that its calls are not
// seen.
//
// Such are programs and libraries that were linked with jemalloc or mimalloc and stripped
// (Rust's programs and node's native modules often are), or in which the functions have names that
// are not known (jemalloc can be built with any prefix). The texts that these allocators complain
// with are there still. For example, a file that takes mmap, munmap and madvise from its C library
// and has "<jemalloc>: " among its constants has jemalloc.
//
// On Windows, where no allocator's functions are entered, all files with one of these are looked
// for, and runtimes of languages too, which on Linux the recorder finds.
#pragma once

#include "base/map.h"
#include "base/str.h"

enum hidden_allocator_kind {
	HIDDEN_ALLOCATOR_JEMALLOC,
	HIDDEN_ALLOCATOR_MIMALLOC,
	HIDDEN_ALLOCATOR_TCMALLOC,
	HIDDEN_ALLOCATOR_ALLOCATORS, // so many; from here on languages
	HIDDEN_ALLOCATOR_GO = HIDDEN_ALLOCATOR_ALLOCATORS,
	HIDDEN_ALLOCATOR_NODE,
	HIDDEN_ALLOCATOR_GRAAL,
	HIDDEN_ALLOCATOR_JAVA,
	HIDDEN_ALLOCATOR_NET,
	HIDDEN_ALLOCATOR_RUBY,
	HIDDEN_ALLOCATOR_PHP,
	HIDDEN_ALLOCATOR_PERL,
	HIDDEN_ALLOCATOR_KINDS,
};

// What each of the allocators complains with, and where in it a byte is that is rare in constants.
extern const struct hidden_allocator_words {
	const char *text;
	size_t rare;
} hidden_allocator_texts[HIDDEN_ALLOCATOR_ALLOCATORS];

// In one file of a process.
struct hidden_allocator {
	const char *what; // "jemalloc"
	bool language;    // it is the runtime of a language
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

// Which allocator is in that file and exports no malloc (enum hidden_allocator_kind), or -1.
// `symbols` becomes whether the file has a table of all symbols.
int hidden_allocator_in(const char *path, bool *symbols);

// The same of an image of Windows, on any system: or the language whose runtime it is.
int hidden_allocator_in_image(const char *path);

// Why what is allocated with it is not recorded, and what helps.
void hidden_allocator_explain(const struct hidden_allocator *allocator, struct str *text);
