// symbols_file: all that this machine knows of one module's file, to be asked by offset.
//
// Holds the file itself (if it is the one that was recorded), its separate debug information, the
// table in .gnu_debugdata, the symbols of all of them and the index of the DWARF. Opened when the
// first of the module's addresses is asked for, once for all processes that ran it.
#pragma once

#include "symbols/places.h"
#include "symbols/search.h"
#include "symbols/symbols_status.h"

struct symbols_file;

// Which file is meant, as it was when the recording was made. Of a Windows module the build-id is
// its PDB's GUID and age, the size that of the image in memory, and the time when it was linked.
struct symbols_file_identity {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_length; // 0: it had none
	uint64_t size_bytes;    // 0: not known; asked only where there is no build-id
	uint64_t mtime_ns;      // the same
	uint64_t memory_bytes;  // of a Windows module as it was loaded; 0: not known
	uint8_t bits;           // of the process; 0: not known
	uint32_t pid;           // of one that has it mapped, and may live; 0: none
};

// Never fails: where nothing can be used, there are no names, and a remark says why. `search`
// is borrowed during the call.
struct symbols_file *symbols_file_open(const struct symbols_file_identity *identity,
				       const struct search *search);
void symbols_file_close(struct symbols_file *file); // NULL is allowed

// The places at `offset` into the empty *places, innermost first: at least one, which may have
// no names. Names are borrowed from the file.
void symbols_file_find(struct symbols_file *file, uint64_t offset, struct places *places);

// What was found, and what of it is missing. Texts belong to the file.
void symbols_file_status(const struct symbols_file *file, struct symbols_status *status);
