// pdb: Microsoft's program database: functions, inlined functions, files and lines of an image.
//
// Opening reads the head: what identifies it, the list of modules (object files), and which parts
// of the image each contributed. A module is read when the first of its addresses is asked for
// (pdb_module.h). The format is untrusted like any other.
#pragma once

#include "base/err.h"
#include "symbols/pe_names.h"
#include "symbols/places.h"

struct pdb;

// `bytes` are borrowed for the life of it. NULL: not a PDB, or one that is cut.
struct pdb *pdb_open(const uint8_t *bytes, size_t size_bytes, struct err *err);
void pdb_close(struct pdb *pdb); // NULL is allowed

// What the image's record of its PDB must equal: 16 bytes, and the age.
const uint8_t *pdb_guid(const struct pdb *pdb);
uint32_t pdb_age(const struct pdb *pdb);

// Add the places at `rva`, innermost first. False if nothing is known; *places is then unchanged.
// Strings belong to the pdb.
// The first question about a module reads all of it.
bool pdb_find(struct pdb *pdb, uint32_t rva, struct places *places);

// Add the public symbols of functions, each up to the end of what its module contributed.
void pdb_add_publics(struct pdb *pdb, struct pe_names *names);
