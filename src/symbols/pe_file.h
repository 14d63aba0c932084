// pe_file: all that this machine knows of one Windows module, to be asked by RVA.
//
// The image is looked for where the user says, at its recorded path (drive.h), and in the symbol
// path; so is its PDB, and beside the image. Debug information is the DWARF in the image, else the
// PDB. Then come the names of public symbols, of the image's symbol table and of what it exports.
// A file that is not the one that was recorded is not used, and a remark says so.
#pragma once

#include "symbols/symbols_file.h"

struct pe_file;

// As symbols_file_open, of a module with a path as Windows writes it.
struct pe_file *pe_file_open(const struct symbols_file_identity *identity,
			     const struct search *search);
void pe_file_close(struct pe_file *file); // NULL is allowed

// As symbols_file_find and symbols_file_status.
void pe_file_find(struct pe_file *file, uint64_t offset, struct places *places);
void pe_file_status(const struct pe_file *file, struct symbols_status *status);
