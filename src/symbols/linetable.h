// linetable: which line of which file an address comes from, for one compilation unit.
//
// Read from .debug_line (DWARF 2 to 5). A table consists of sequences, each a run of code with
// rising addresses and an end of its own; what is between sequences has no line, however near
// the next row is. Where several rows have one address, the last one counts.
//
// The table is untrusted: a row takes at least a byte, so that its size bounds the work.
#pragma once

#include "symbols/nest.h"

// { 0 } is an empty table.
struct linetable {
	struct linetable_row *rows; // private
	size_t rows_count, rows_capacity;
	struct linetable_sequence *sequences;
	size_t sequences_count, sequences_capacity;
	struct nest nest; // sequence by address
};

// The section and what is known of it.
// Borrowed by the reading, and not after it.
struct linetable_source {
	const uint8_t *bytes; // of .debug_line; little-endian
	size_t size_bytes;
	uint8_t address_bytes;         // 4 or 8
	uint64_t code_start, code_end; // sequences elsewhere belong to code that was dropped
};

// Read the table at `offset` of the section. What is damaged ends it; what came before stays.
void linetable_read(struct linetable *table, const struct linetable_source *source,
		    uint64_t offset);
void linetable_fini(struct linetable *table);

// The file, as a number in the table's list of files, and the line (0: none). False if the
// address is in no sequence.
// Two binary searches: of the sequence, then of the row.
bool linetable_find(const struct linetable *table, uint64_t address, uint32_t *file,
		    uint32_t *line);
