// pdb_ids: the names of inlined functions, which a PDB keeps apart from the code.
//
// An item says how a function is called and in which scope or class it is; the class is a
// type. Both streams are read when the first name is asked for, and then once from end to end,
// for records have no directory. The format is untrusted: numbers lead to records that are there.
#pragma once

#include "base/map.h"
#include "symbols/msf.h"

// The records of one of the streams.
// Empty where the stream is missing or damaged: then no number leads to a record.
struct pdb_ids_table {
	struct msf_stream stream;
	uint32_t first; // number of the first record
	// Offsets in the stream, of record `first` and those after it.
	uint32_t *places;
	size_t count, capacity;
};

// `{ .msf = … }` has read nothing yet.
struct pdb_ids {
	const struct msf *msf; // borrowed
	struct pdb_ids_table types, items;
	bool types_read, items_read;
	struct map names; // item -> text, owned; 0: it has none
};

void pdb_ids_fini(struct pdb_ids *ids);

// The function `item` with its scope, or NULL. Valid until pdb_ids_fini.
const char *pdb_ids_name(struct pdb_ids *ids, uint32_t item);
