// dbghelp: names by Windows' own library, where our readers find none: a PDB of a form that they
// do not read, a symbol server, on Wine old DWARF.
//
// dbghelp.dll is loaded when it is asked for the first time. It is set to take nothing but what
// belongs to the image; what it makes of exports alone is not used, for it names whatever follows
// an export after it. Elsewhere than on Windows there is none.
#pragma once

#include "symbols/places.h"
#include "symbols/search.h"

#include <stdint.h>

struct dbghelp;

// Of the image at `path`. NULL: it knows nothing of it. A remark says if the library is missing.
struct dbghelp *dbghelp_open(const char *path, uint32_t image_bytes, const struct search *search);
void dbghelp_close(struct dbghelp *help); // NULL is allowed

// As debuginfo_find, at an RVA.
bool dbghelp_find(struct dbghelp *help, uint32_t rva, struct places *places);
