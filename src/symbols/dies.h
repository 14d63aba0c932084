// dies: the tree of DIEs, in which DWARF tells of a program: steps through it, and what one says.
//
// DWARF is untrusted: DIEs must rise, and depth, length and steps are bounded.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>

enum { DIES_DEPTH_MAX = 256 }; // of the tree that we follow

// Step to the next sibling. It must be after all that was visited, which *last keeps: a malformed
// file could else lead us in circles, or through the same DIEs again on each level.
bool dies_step(Dwarf_Die *die, Dwarf_Off *last);

// The same for the first child.
bool dies_descend(Dwarf_Die *die, Dwarf_Die *child, Dwarf_Off *last);

// A text of the DIE, or of those that it refers to for what it does not say itself. NULL: none.
const char *dies_text(Dwarf_Die *die, unsigned kind);

// A flag of the DIE, or of those that it refers to.
bool dies_flag(Dwarf_Die *die, unsigned kind);

// The mangled name of a function, or NULL.
const char *dies_linkage_name(Dwarf_Die *die);

// Does a mangled name of C++ say which function it is? Not where clang numbers lambdas by their
// order in the file ("main::$_7"): one more in front of it, and it is another. Nor where the
// demangler does not read it (constraints of C++20).
bool dies_linkage_tells(const char *linkage);

// Is it one of those that name functions by the ABI of C++?
bool dies_is_cpp(int language);
