// pe_dwarf: the DWARF that mingw's compilers put into Windows images.
//
// libdw wants ELF. So the image's .debug_ sections are laid into an ELF file in memory, with its
// code sections as places without contents, and are then read as any other debug information.
// Where there is no libdw (Windows), there are no names from it, and a remark says so.
#pragma once

#include "symbols/places.h"
#include "symbols/remarks.h"
#include "trace/pe.h"

struct pe_dwarf;

// NULL: it has none. `pe` is not kept.
struct pe_dwarf *pe_dwarf_new(const struct pe *pe, const char *path, struct remarks *remarks);
void pe_dwarf_free(struct pe_dwarf *dwarf); // NULL is allowed

// As debuginfo_find, at an RVA.
bool pe_dwarf_find(struct pe_dwarf *dwarf, uint32_t rva, struct places *places);
