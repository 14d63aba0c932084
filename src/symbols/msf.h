// msf: the container of a PDB, a file system in a file.
//
// The file is cut into blocks; a directory says which blocks make each stream. A stream is handed
// out as contiguous bytes: where its blocks follow each other, those of the file, else a copy.
// Nothing in it is believed: blocks are in the file, and no stream is larger than the file.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// { 0 } is no container.
// Borrows all bytes but those of the directory.
struct msf {
	const uint8_t *bytes; // borrowed
	size_t size_bytes;
	uint32_t block_bytes, blocks_count;
	uint8_t *directory; // owned
	size_t directory_bytes;
	struct msf_entry *entries; // private
	uint32_t streams_count;
};

// Accepts { 0 }, which is an empty one.
// A stream, whose bytes stay valid until msf_stream_close, or msf_close if they are the file's.
struct msf_stream {
	const uint8_t *bytes;
	size_t size_bytes;
	uint8_t *owned; // NULL: the bytes are the file's
};

// False: not a PDB of the 7.00 form, or its directory is damaged.
bool msf_open(struct msf *msf, const uint8_t *bytes, size_t size_bytes, struct err *err);
void msf_close(struct msf *msf); // accepts { 0 }

// Stream `number`; an empty one if there is none or it is damaged. The caller closes it.
// Costs a copy of the stream, unless its blocks follow each other.
struct msf_stream msf_read(const struct msf *msf, uint32_t number);
void msf_stream_close(struct msf_stream *stream);
