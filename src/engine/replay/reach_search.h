// reach_search: which blocks a program can still find: those to which pointers lead, from its roots
// on, as a conservative collector of garbage would look for them.
//
//     reach_search_new              the blocks, by address
//       reach_search_root           memory that is a root, and registers
//       reach_search_next           where to read next …
//       reach_search_take           … and what is there, until next says no
//       reach_search_skip           … or that nothing is, for a while
//       reach_search_finish         each block has its state
//     reach_search_free
//
// Each aligned word of a root or of a block is a pointer if it is the address of a block, or of a
// byte inside of one; the byte after its end is not in it. The contents of blocks are read once, in
// the order of their addresses, and only pointers are kept, 8 bytes each: so memory goes with
// blocks and pointers, not with bytes.
//
// REACHABLE are blocks to which pointers to beginnings lead all the way, INSIDE those that need a
// pointer to the inside of a block somewhere. Of the rest, which is lost to the program, those are
// HELD to which another one leads; of a circle one block is UNREACHABLE, and holds the others.
#pragma once

#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>

enum { REACH_SEARCH_PART = 1 << 20 }; // bytes that are asked for at once, at most

struct reach_search;

// Borrows `blocks`, whose addresses rise, and sets state, place and at of each. A word has 4 or 8
// bytes.
struct reach_search *reach_search_new(struct trace_reach_block *blocks, size_t count,
				      unsigned word_bytes);
void reach_search_free(struct reach_search *search); // NULL is allowed

// Memory at `at`, as it is there, or a register (whose `at` stays what it is). With
// `beginnings_only` pointers to the inside of blocks are none.
void reach_search_root(struct reach_search *search, const void *bytes, size_t size, uint64_t at,
		       enum trace_reach_place place, bool beginnings_only);

// The next memory that is to be read. False: all was.
bool reach_search_next(struct reach_search *search, uint64_t *start, uint64_t *end);
void reach_search_take(struct reach_search *search, const void *bytes);

// The end of the block that goes on after what was taken. 0: none does.
uint64_t reach_search_rest(const struct reach_search *search);

// Up to `to`, which is not after that end, the block has no pointers, and is not read.
void reach_search_skip(struct reach_search *search, uint64_t to);

// All was taken: say what each block is.
void reach_search_finish(struct reach_search *search);
