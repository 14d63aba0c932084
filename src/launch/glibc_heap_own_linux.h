// glibc_heap, between its parts: where things are (glibc_heap_find_linux.c), and what is in them
// (glibc_heap_linux.c).
#pragma once

#include "base/map.h"
#include "base/mem.h"
#include "collect/maps_text.h"
#include "launch/glibc_heap_linux.h"
#include "launch/objects_linux.h"
#include "launch/tracee_linux.h"

#include <sys/types.h>

// What differs by the class of a program. There is one for each, constant, in glibc_heap_linux.c.
// Of struct malloc_state (an arena): places in words from its beginning.
struct glibc_heap_layout {
	uint16_t word;     // bytes
	uint16_t smallest; // chunk
	uint16_t lead;     // before a chunk that has a mapping of its own
	// Where the heads of lists of small free chunks (fastbins) are, how many there are, and how
	// many bytes one's chunks have more than those of the list before.
	uint16_t fast_at, fast_count;
	uint16_t fast_step; // from one size to the next one
	// Where the last chunk is found, the bins, the next arena of the ring, and how many bytes
	// its heap has; and how many words an arena is.
	uint16_t top_at, bins_at, next_at, system_at, arena_words;
	uint32_t heap_bytes;   // of an arena that is not the main one
	uint16_t heap_info[2]; // bytes of such a heap's own, before 2.35 and since
};

enum {
	GLIBC_HEAP_BINS = 127,            // of an arena: lists of free chunks by size
	GLIBC_HEAP_ARENA_WORDS_MAX = 280, // more than either layout's arena_words
	GLIBC_HEAP_ALIGN = 16,            // of blocks

	GLIBC_HEAP_IN_USE = 1,           // flags of a chunk's size: the one before it is in use
	GLIBC_HEAP_MAPPED = 2,           // it has a mapping of its own
	GLIBC_HEAP_FLAGS = 7,            // all of them: what is no size
	GLIBC_HEAP_PAGE = 4096,          // bytes
	GLIBC_HEAP_WINDOW = 64 << 10,    // that is read at once, where chunks are small
	GLIBC_HEAP_LARGE = 2048,         // a chunk that is better stepped over
	GLIBC_HEAP_LIST_MAX = 1 << 22,   // chunks: a longer list is taken for a circle
	GLIBC_HEAP_ARENAS_MAX = 1 << 14, // likewise
	GLIBC_HEAP_TLS_WORDS = 1024,     // below the thread pointer
	GLIBC_HEAP_TLS_WORDS_MAX = 1 << 16,
	GLIBC_HEAP_TLS_PART = 128,     // that are read at once
	GLIBC_HEAP_TLS_NEAR = 2,       // on either side of a tcache's pointer
	GLIBC_HEAP_TCACHE_BINS = 64,   // lists of a thread's own, one a size
	GLIBC_HEAP_MANGLED_SINCE = 32, // 2.32: links of lists are mixed with their place
	GLIBC_HEAP_WIDE_SINCE = 30,    // 2.30: counts of a tcache have 16 bits
	GLIBC_HEAP_PAGES_SINCE = 35,   // 2.35: mp_ knows of huge pages
	GLIBC_HEAP_MINOR_MIN = 27,     // the oldest version whose layout is known: 2.27
};

// What is at hand while one process is read, whose threads are all stopped. Addresses are those of
// the process. One thread of ours; `heap`, `objects` and `tracee` are borrowed.
struct glibc_heap_walk {
	struct glibc_heap *heap;
	const struct glibc_heap_layout *layout; // of the process's class
	unsigned word, header;                  // bytes: of a word, and of a chunk before its block
	const struct objects *objects;
	const struct tracee *tracee;
	pid_t pid;
	unsigned minor;                      // of glibc 2.minor; 0: it does not say
	uint64_t main;                       // main_arena
	bool begun;                          // it was there, whether it made sense or not
	uint64_t start;                      // of its heap
	uint64_t mapped_count, mapped_bytes; // mp_: chunks with mappings of their own
	uint64_t cached_max;                 // of a size, in a tcache; 0: there are none
	struct map heaps;                    // of arenas: where one begins, and how long it is
	struct map unused;  // chunks in fastbins and tcaches, and the tcaches themselves: address
	uint64_t window_at; // where what is in `window` was read
	size_t window_size; // bytes of it; 0: nothing was read yet
	uint8_t window[GLIBC_HEAP_WINDOW];
	uint64_t data_at; // where they are there
	uint64_t *data;   // libc's variables
	size_t data_count;
};

// Say in heap->why what is wrong, as the end of a sentence for the user; of several reasons the
// first is kept. Returns false.
bool glibc_heap_fail(struct glibc_heap_walk *walk, const char *why);

// Read words of the process's width, each widened to 64 bits. False: not all of them are there, and
// `words` is not to be used.
bool glibc_heap_words(const struct glibc_heap_walk *walk, uint64_t at, uint64_t *words,
		      size_t count);

// The address that links of the arena's bin `number` (from 0) have where they lead back to it: a
// chunk's, though there is none.
uint64_t glibc_heap_bin(const struct glibc_heap_walk *walk, uint64_t arena, unsigned number);

// The process's next mapping; `*at` is NULL at first. False: there are no more. The text in *line
// is borrowed from `objects`.
bool glibc_heap_next_mapping(const struct objects *objects, const char **at,
			     struct maps_line *line);
// Whether variables can be there: private, to be read and written.
bool glibc_heap_is_data(const struct maps_line *line);

// In this order. False: walk->heap->why says what was not found, or is not known.
bool glibc_heap_find_version(struct glibc_heap_walk *walk);    // walk->minor
bool glibc_heap_read_data(struct glibc_heap_walk *walk);       // libc's variables: walk->data
bool glibc_heap_find_main(struct glibc_heap_walk *walk);       // main_arena: walk->main
bool glibc_heap_find_parameters(struct glibc_heap_walk *walk); // of mp_
