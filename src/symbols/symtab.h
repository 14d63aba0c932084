// symtab: the function symbols of one module, to be asked for by address.
//
// Symbols may come from several files: .symtab of the file or of its separate debug file, the
// table inside .gnu_debugdata, .dynsym. They are gathered with symtab_add, sorted once by
// symtab_build, then looked up in log n.
//
// An address has a name only if a symbol covers it. The nearest symbol before it is no answer: in
// a stripped library that would be some exported function that has nothing to do with it. Symbols
// without a size (assembly) reach to the next symbol or the end of their section, and give way to
// symbols with one. Of several names for one range (malloc, __libc_malloc) the one is taken that
// a person would write: global before weak before local, fewer underscores, shorter.
#pragma once

#include "symbols/nest.h"
#include "symbols/object.h"

// { 0 } is an empty table.
struct symtab {
	struct symtab_entry *entries; // private
	size_t count, capacity;
	struct nest nest;
};

// Add the function symbols of the sections of `type` (SHT_SYMTAB, SHT_DYNSYM). Returns how many.
// Names are borrowed from `object`.
size_t symtab_add(struct symtab *symtab, const struct object *object, uint32_t type);
void symtab_build(struct symtab *symtab); // once, after the last symtab_add
void symtab_fini(struct symtab *symtab);

// The name of the function that covers `offset`, as it is in the file, or NULL. `*source` is
// the name of the source file of a local function where the table has it, else NULL.
const char *symtab_find(const struct symtab *symtab, uint64_t offset, const char **source);
