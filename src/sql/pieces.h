// pieces: a trace in the database as the file that it is, and what its code is called.
//
// The table `pieces` has (trace, file, at, size, bytes): `file` is "" for the trace itself, else
// the label of a file of code (its build-id, mostly) in hexadecimal, of which `bytes` are the names
// that the trace needs. A file is its pieces in the order of `at`.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PIECES_SIZE = 4 << 20, PIECES_LABEL_MAX = 32, PIECES_FILE_MAX = 2 * PIECES_LABEL_MAX + 1 };

// A label as text.
void pieces_file(const uint8_t *label, size_t length, char out[static PIECES_FILE_MAX]);

// And back. 0: it is none. Else its length.
size_t pieces_label(const char *file, uint8_t out[static PIECES_LABEL_MAX]);
