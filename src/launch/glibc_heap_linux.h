// glibc_heap: the blocks that a stopped process has from glibc's malloc, read from its memory.
//
// Nothing of the process's runs for that. Its arenas are found by their form: main_arena is where
// bins point to themselves in libc's variables, the others are on its list. A heap is a row of
// chunks from its first to its top; a chunk is free if the next one says so, or if it is in a
// fastbin or in a thread's tcache. Blocks that have a mapping of their own are found by their
// headers, and must be as many, and of as many bytes, as malloc's own parameters (mp_) say.
//
// No thread may be inside of malloc. What is found is checked where it can be: each chain of chunks
// must end at its top, each list hold only chunks of its size. What does not fit is not guessed
// at: then nothing is read, and `why` says what was wrong.
#pragma once

#include "base/str.h"
#include "collect/collect.h"
#include "launch/objects_linux.h"
#include "launch/tracee_linux.h"

struct attach_patch;
struct map;

struct glibc_heap {
	// In no order. Sizes are what may be used: what was asked for, rounded up.
	struct collect_block *blocks;
	size_t count, capacity;
	uint64_t bytes;
	uint32_t arenas;
	uint32_t mapped; // of the blocks, those with a mapping of their own
	size_t inexact;  // mimalloc's whose addresses the program may know by another one in them
	char version[16];
	struct str why;  // not empty: not read, or not surely
	struct str with; // of which allocators they are: "glibc, jemalloc"
	struct str but;  // of which one they are not, and why; empty: of all that are known
};

// Have each thread that is inside of malloc come out of it, while the others wait. One that is at
// one of the `entries` is not inside. False: one did not within `most_ns` since they were stopped.
bool glibc_heap_settle(const struct objects *objects, struct tracee *tracee,
		       const struct attach_patch *entries, uint32_t entries_count,
		       uint64_t most_ns);

// False: nothing is known of what it has allocated; `why` says why.
bool glibc_heap_read(struct glibc_heap *heap, const struct objects *objects,
		     const struct tracee *tracee);

// For who reads the heap of another allocator too: a block more; and, of those from `from` on,
// leave out what is in `unused`, and what the allocator has for itself (in `own`; NULL: nothing).
// Returns how much is unused that is no block.
void glibc_heap_add(struct glibc_heap *heap, uint64_t address, uint64_t size);
size_t glibc_heap_sift(struct glibc_heap *heap, size_t from, const struct map *unused,
		       const struct map *own);

// Whether what was read, of all allocators, can be: each block in memory that is there, none
// over another one. Else nothing is believed, and `why` says so. Needs no stop.
void glibc_heap_check(struct glibc_heap *heap, const struct objects *objects);

// What the trace says of them (collect/before.h). `why` is then for people, after "is not".
void glibc_heap_note(struct glibc_heap *heap, struct str *text);

void glibc_heap_fini(struct glibc_heap *heap); // accepts { 0 }
