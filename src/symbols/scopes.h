// scopes: which DIE is in which, of those that have others in them: namespaces, classes, functions.
//
// Units of types, and those that dwz made, have lists of their own.
#pragma once

#include "base/map.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

#define SCOPES_NONE UINT32_MAX

// A DIE that others may be in, or whose place is asked for.
struct scope {
	uint64_t address; // of the DIE, in memory; they rise
	uint32_t parent;  // SCOPES_NONE: the unit itself
};

// Of one unit. What is in a scope follows it.
struct scopes {
	int language; // -1: it does not say
	bool typed;   // it has types at all (not so with -g1)
	struct scope *items;
	size_t count, capacity;
};

// What a program calls a class: DWARF tells it by the word that it was declared with.
bool scopes_is_class(int tag);

// What others can be in by name, or what has a place by which it is found in the list.
bool scopes_is_scope(int tag);

// The list of the unit that a DIE is in, made when it is first asked for: a unit whose functions
// all have linkage names has none. `units` has them all, and is { 0 } before.
const struct scopes *scopes_of(struct map *units, Dwarf_Die *die);

// The number of a DIE in its unit's list, or SCOPES_NONE.
uint32_t scopes_find(const struct scopes *scopes, const Dwarf_Die *die);

// The DIE that number `at` of the list is.
Dwarf_Die scopes_die(const struct scopes *scopes, uint32_t at, const Dwarf_Die *of_unit);

void scopes_fini(struct map *units);
