// objects_inside: allocators in the files of another process that these do not export.
//
// Such are Rust's jemalloc (_rjem_malloc) and what is linked with hidden names. They are found by
// the symbol table of the file, or of the file of debugging information that its build-id leads to;
// where there is neither, they are not known.
#pragma once

#include "launch/objects_linux.h"

// Find those in one object. Takes as long as reading a symbol table does.
void objects_inside_look(const struct objects *objects, struct objects_one *object);

// What was found so of the same process earlier, but for the code.
void objects_inside_know(struct objects *objects, const struct objects *earlier);
