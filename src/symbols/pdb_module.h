// pdb_module: the symbols and lines of one object file within a PDB.
//
// Its stream holds records of symbols, nested by the places they end at, and then tables of lines.
// Each function is a node, and so is each function that was inlined into it; the lines of inlined
// code are in annotations of its record. Nodes go into a nest, so that a lookup is a binary
// search and a walk to the outermost function.
#pragma once

#include "symbols/msf.h"
#include "symbols/nest.h"
#include "symbols/places.h"

// What a module needs of the rest of the PDB.
struct pdb_sections {
	// The sections of the image, number 1 first. What a PDB calls a place is a section's number
	// and an offset in it; an RVA is what we ask by.
	struct pdb_section {
		uint32_t rva, size_bytes;
	} * items;
	size_t count;
};

// The RVA of a place in section `number` (from 1). False: there is no such place.
bool pdb_module_rva(const struct pdb_sections *sections, uint16_t number, uint32_t offset,
		    uint32_t *rva);

// As the list of modules states it. What is more than the stream has is cut.
struct pdb_module_head {
	uint32_t symbols_bytes, old_lines_bytes, lines_bytes; // parts of the stream
};

struct pdb_module;

// Takes the stream over. `sections` are borrowed for the call.
// Reads all symbols and lines of the module at once, and never fails: what is damaged has no names.
struct pdb_module *pdb_module_new(struct msf_stream stream, const struct pdb_module_head *head,
				  const struct pdb_sections *sections);
void pdb_module_free(struct pdb_module *module); // NULL is allowed

// A function at an address, as the PDB refers to it.
struct pdb_place {
	const char *name; // NULL: an inlined function, whose name is item `inlinee`
	uint32_t inlinee;
	uint32_t file; // offset of its path among the PDB's texts; UINT32_MAX: not known
	uint32_t line; // 0: not known
};

// Add up to `count` places, innermost first; returns how many there are.
// 0: nothing is known of the address. Where only its line is known, one place has the name "".
size_t pdb_module_find(struct pdb_module *module, uint32_t rva, struct pdb_place *places,
		       size_t count);
