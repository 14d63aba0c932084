// places: the functions at one address as a file's debug information tells them.
//
// Inlined code has several, innermost first. Names are as the compiler wrote them (mangled);
// demangling comes later, once for each name.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Deeper inlining than this is cut at the outer end. Compilers stay far below.
enum { PLACES_MAX = 1024 };

// Strings are borrowed from the file they were read from.
struct place {
	const char *function; // NULL: not known
	const char *file;     // NULL: not known
	uint32_t line;        // 0: not known
	bool plain;           // `function` lacks its types; a symbol table may say more
	bool bare;            // and what it is in: nothing says its namespaces and classes
	uint64_t copy;        // where it has code of its own, whose symbol says more; 0: nowhere
};

// { 0 } is an empty list.
struct places {
	struct place *items;
	size_t count, capacity;
};

void places_fini(struct places *places);
void places_clear(struct places *places);

// A new, empty place at the outer end; NULL when there are PLACES_MAX. Valid until the next one.
struct place *places_add(struct places *places);

// Which of two names of one address is the better one, as qsort asks it: of fewer underscores in
// front, then the shorter one, then the first by alphabet.
int places_compare_names(const char *one, const char *other);
