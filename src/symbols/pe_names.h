// pe_names: the functions of a Windows image by address, where there is no debug information.
//
// Names come from the COFF symbol table (mingw writes one), from the publics of a PDB, and from the
// exports. An address has a name only if it surely is in the function of that name (pe_bounds.h);
// a table that lists every function, local ones too, is trusted up to the next one in its section.
#pragma once

#include "base/map.h"
#include "symbols/pe_bounds.h"

// Where a name comes from; of several for one address the first is taken.
enum pe_names_rank {
	PE_NAMES_COFF,   // a function of the COFF symbol table
	PE_NAMES_PUBLIC, // of a PDB
	PE_NAMES_LABEL,  // a name in code of which the COFF symbol table does not say what it is
	PE_NAMES_EXPORT,
};

// { 0 } has no names.
// To be filled, then built once, then asked: pe_names_add…, pe_names_build, pe_names_find.
struct pe_names {
	struct pe_bounds bounds;
	struct pe_names_entry *entries; // private
	size_t count, capacity;
	bool lists_locals; // the COFF symbol table does, so it lists all functions
	char **owned;
	size_t owned_count, owned_capacity;
	struct map unnamed; // RVA -> text, owned
};

// `pe` is borrowed; it may be one that pe_open never saw ({ 0 }), of which nothing is known.
void pe_names_init(struct pe_names *names, const struct pe *pe);
void pe_names_fini(struct pe_names *names);

// Add a name: borrowed, as the file has it. It reaches to `end` at most; 0: that is not known.
void pe_names_add(struct pe_names *names, uint32_t rva, uint32_t end, const char *name,
		  enum pe_names_rank rank);
size_t pe_names_add_coff(struct pe_names *names); // how many functions
void pe_names_add_exports(struct pe_names *names);
void pe_names_build(struct pe_names *names); // once, after the last of them

// The function that `rva` is in, or NULL.
// A binary search; the first question about a function without an entry in .pdata reads all code
// once.
const char *pe_names_find(struct pe_names *names, uint32_t rva);

// MODULE!sub_RVA: what stands for a name where there is none. The RVA is that of the function's
// beginning where it is known.
const char *pe_names_unnamed(struct pe_names *names, const char *module, uint32_t rva);
