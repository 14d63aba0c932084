// fpo: what a PDB says of the frames of a 32-bit image's functions.
//
// Compilers that leave the frame pointer out tell debuggers how large the frame of each function
// is. Two streams of a PDB have that, by address: a small fixed record (FPO_DATA), and one with a
// program for a stack machine, which says where the return address and the caller's registers are:
//
//     $T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + = $ebp $T0 8 - ^ =
//
// .raSearch is where the return address is: the function's locals and saved registers further out
// than esp, plus what it has pushed for a call that goes on. Nobody says how much that is, so
// debuggers look at the words from there on.
//
// The rows are made once for an image, in pages of the caller's, and never change. The file is
// untrusted: no length of it is believed. All reading goes through functions of the caller's.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FPO_ID_BYTES = 20 }; // GUID and age

// What is read, and where pages come from.
struct fpo_file {
	void *context;
	uint64_t bytes;                                                    // of the file
	bool (*read)(void *context, uint64_t at, void *out, size_t bytes); // false: it cannot
	void *(*take)(size_t bytes);                                       // NULL: there are none
	void (*give_back)(void *pages, size_t bytes);
};

enum fpo_kind {
	FPO_SEARCH, // the return address is `frame` bytes from esp or further out
	FPO_BY_EBP, // it is just before ebp + `frame`
};

// Addresses are offsets from the image's base.
struct fpo_row {
	uint32_t function;  // where it begins
	uint32_t from, end; // the row is about these: what follows the making of the frame
	int32_t frame;
	uint16_t arguments; // bytes of the function's own; as many as fit, if it has more
	int16_t kept_at;    // words from the cfa to the caller's ebp; 0: it is in ebp
	uint8_t kind;
	bool keeps_somewhere; // ebp is the function's own; nobody says where the caller's is
};

struct fpo_table {
	size_t bytes; // of the pages, with this
	uint32_t count;
	struct fpo_row rows[]; // by `from`
};

// The rows of the PDB with that id, for an image of so many bytes. NULL: it is not this PDB, its
// code was moved after it was linked (OMAP), or nothing is in it that can be used. The caller gives
// `bytes` back.
HIDDEN struct fpo_table *fpo_read(const struct fpo_file *file, const uint8_t id[FPO_ID_BYTES],
				  uint32_t image_bytes);

// The row of the instruction at `rva`, or NULL.
HIDDEN const struct fpo_row *fpo_find(const struct fpo_table *table, uint32_t rva);

// What a program says, into kind, frame (from .raSearch, without the record's sizes) and kept_at.
// False: it is not understood.
HIDDEN bool fpo_program(const char *text, size_t bytes, struct fpo_row *row);
