// debuginfo: functions, inlined functions, files and lines from DWARF.
//
// Opening reads the head of each compilation unit, no more. A unit is indexed when the first of
// its addresses is asked for: all its functions and inlined calls that have code go into a nest,
// so that a lookup is a binary search and a walk to the outermost caller, not a search through
// the tree.
//
// DWARF is untrusted: siblings must rise, depth and counts are bounded, and whatever libdw refuses
// is as if it were not there.
#pragma once

#include "symbols/object.h"
#include "symbols/places.h"
#include "symbols/remarks.h"

struct debuginfo;

// `object` has debug information and is borrowed for the life of the debuginfo. Code is in
// [code_start, code_end): ranges elsewhere are remains of functions that the linker dropped. Split
// debug information (.dwo) that is not found is said in `remarks`, once for all of the object's.
struct debuginfo *debuginfo_new(const struct object *object, uint64_t code_start, uint64_t code_end,
				struct remarks *remarks);
void debuginfo_free(struct debuginfo *debuginfo); // NULL is allowed

// Add the places at `offset`, innermost first. False if nothing is known; *places is then
// unchanged. A place may lack its function (then a symbol table may know it) or its line. Strings
// are borrowed from the object.
bool debuginfo_find(struct debuginfo *debuginfo, uint64_t offset, struct places *places);
