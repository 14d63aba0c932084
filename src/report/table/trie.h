// trie: the stacks of a window, as the trace keeps them: each one frame below its callers' stack.
//
// A *place* is one function of a stack's innermost frame, `line` 0 being the innermost of those
// that were inlined into each other. Stacks that differ in nothing but the allocator wrappers at
// their inner end end at one place, so that a stack ends at most at one line of its frame. What
// passes a place is a difference of two sums: stacks are in the order in which one walks the
// trie, where all those below a stack follow it.
//
// It costs 16 bytes for each stack of the trace and 64 for each of the window.
#pragma once

#include "report/ask/functions.h"
#include "report/ask/query_context.h"

// One stack of the trace, with all that have it as their callers.
struct trie_node {
	uint32_t child, sibling; // stack ids: the first below it, the next of its caller's; 0: none
	uint32_t passing;        // rows of `sums` that belong to it and those below; 0: not there
	uint32_t row : 31;       // the first of them
	uint32_t ends : 1;       // stacks end here: that row is theirs
};

struct trie {
	const struct reader *reader; // borrowed
	struct names *names;         // borrowed
	struct functions *functions; // owned
	bool plain;                  // wrappers and runtimes are not passed over
	struct trie_node *nodes;     // by stack id; 0 is the caller of all
	uint32_t count;
	struct window_row *sums;   // of the rows before this one
	struct window_row without; // of what has no stack
};

struct trie_place {
	uint32_t stack, line;
};

// Asks the engine. `plain`: wrappers are functions like others. False: nothing is to be freed.
bool trie_init(struct trie *trie, struct query_context *asked, bool plain, struct err *err);
void trie_fini(struct trie *trie); // accepts { 0 }

// The functions of a stack's innermost frame, as functions_at; the line at which stacks end that
// end here.
const uint32_t *trie_lines(const struct trie *trie, uint32_t stack, size_t *count);
uint32_t trie_end_line(const struct trie *trie, uint32_t stack);
uint32_t trie_function(const struct trie *trie, struct trie_place place);
const struct symbol *trie_symbol(const struct trie *trie, struct trie_place place);
uint32_t trie_caller(const struct trie *trie, uint32_t stack); // 0: none

// Whether any stack passes the place; sums of those, and of those that end here (at any line).
bool trie_is_passed(const struct trie *trie, struct trie_place place);
struct window_row trie_passing(const struct trie *trie, struct trie_place place);
struct window_row trie_ending(const struct trie *trie, uint32_t stack);

// The next place outwards. False: there is none.
bool trie_outwards(const struct trie *trie, struct trie_place *place);

// Whether this function and all outside of it are those in which threads begin.
bool trie_begins(const struct trie *trie, struct trie_place place);
