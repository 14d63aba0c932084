// inferred: functions without a name that allocate on behalf of others, known by who calls them.
//
// A stripped program's own xmalloc is on top of all of its rows, as a bare address that says
// nothing. No table of names (wrappers.h) can know it, but its callers are all over the program. A
// call site counts as a wrapper's if
//
//     functions in 8 pages of code or more call its function, and
//     a quarter of the stacks that end in its file, or more, end with it.
//
// The first alone is true of many constructors, the second alone of a small program's only
// function. Both together hold for malloc's of ngspice, vim, godot, z3 and gold, and for few
// functions that do more. Who has a name is not judged: it says more than its callers do.
//
// Counted when first asked, in one pass over the stacks.
#pragma once

#include "trace/reader.h"

struct inferred;

// `reader` is borrowed, after its definitions were scanned.
struct inferred *inferred_new(const struct reader *reader);
void inferred_free(struct inferred *inferred);

// Whether `frame`, whose function has no name, is such a call site. Of a trace that grows all is
// counted again when it has twice as many stacks.
bool inferred_match(struct inferred *inferred, frame_id frame);
