// dies_names: whole names of functions, put together from their DIEs and those around them.
//
// A DIE of C++ often says only its own part of a name: "open", of a function that no other file
// sees. Its namespaces and classes are the DIEs around it, its parameters those below it. Put
// together they are the name that the symbol of that function has, as the demangler writes it:
// "app::(anonymous namespace)::store::open(char const*) const".
#pragma once

#include "base/map.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

// Names that were put together. { 0 } has none yet.
struct dies_names {
	struct map units; // of libdw -> struct scopes, owned
	struct map texts; // address of the DIE -> text, owned
};

void dies_names_fini(struct dies_names *names);

// The whole name of the function `die`, which has no mangled one that tells. NULL where it has
// none, or where its plain one is whole: it is not of C++ (`cpp`: so is the unit that refers to
// it), or it is one of C's that C++ knows. Valid until dies_names_fini.
const char *dies_names_find(struct dies_names *names, Dwarf_Die *die, bool cpp);
