// shelf: the symbol files that a trace carries in BUNDLE blocks (docs/format.md, section 9).
//
// A file lies in one or more blocks, each a part of it. The shelf remembers where BUNDLE blocks
// are, reads their labels when the first file is asked for, and a file's bytes when it is.
#ifndef TRACE_SHELF_H
#define TRACE_SHELF_H

#include "trace/walk.h"

enum {
	SHELF_LABEL_MAX = 32,     // bytes of a build-id
	SHELF_FILE_MAX = 1 << 30, // of one symbol file
};

struct shelf_part {
	uint8_t build_id[SHELF_LABEL_MAX];
	size_t build_id_length;
	uint64_t file_size; // of the whole file
	uint64_t at;        // of this part in the file
	uint64_t size;      // of this part
	uint64_t block_at;  // offset of the block in the trace
};

struct shelf_file {
	uint8_t build_id[SHELF_LABEL_MAX];
	size_t build_id_length;
	uint8_t *bytes;
	uint64_t size;
};

struct shelf {
	uint64_t *blocks; // offsets of BUNDLE blocks
	size_t blocks_count, blocks_capacity;
	size_t blocks_read; // of which the labels were read
	struct shelf_part *parts;
	size_t parts_count, parts_capacity;
	struct shelf_file **files; // that were asked for
	size_t files_count, files_capacity;
};

void shelf_fini(struct shelf *shelf); // accepts { 0 }
void shelf_add(struct shelf *shelf, uint64_t block_at);

// The payload of a BUNDLE block. `bytes` is borrowed from the payload.
bool shelf_decode(struct bytes_cursor payload, struct shelf_part *part, const uint8_t **bytes);
void shelf_encode(struct bytes *out, const struct shelf_part *part, const uint8_t *bytes);

// The file of a build-id, borrowed until shelf_fini; NULL if it is not there or not whole.
const void *shelf_find(struct shelf *shelf, const struct store *store, const uint8_t *build_id,
		       size_t build_id_length, size_t *size);

#endif
