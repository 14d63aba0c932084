// bundle_reader: the symbol files that a trace carries in BUNDLE blocks (docs/format.md, section
// 9).
//
// A file is in one or more blocks, each a part of it. The bundle reader remembers where BUNDLE
// blocks are, reads their labels when the first file is asked for, and a file's bytes when it is.
#pragma once

#include "trace/walk.h"

enum {
	BUNDLE_READER_LABEL_MAX = 32,     // bytes of a build-id
	BUNDLE_READER_FILE_MAX = 1 << 30, // of one symbol file
};

// What one BUNDLE block holds, without its bytes: they are read again when the file is asked for.
struct bundle_reader_part {
	uint8_t build_id[BUNDLE_READER_LABEL_MAX];
	size_t build_id_length;
	uint64_t file_size; // of the whole file
	uint64_t at;        // of this part in the file
	uint64_t size;      // of this part
	uint64_t block_at;  // offset of the block in the trace
};

// `bytes` is the whole symbol file, unpacked, kept until bundle_reader_fini.
struct bundle_reader_file {
	uint8_t build_id[BUNDLE_READER_LABEL_MAX];
	size_t build_id_length;
	uint8_t *bytes;
	uint64_t size;
};

// The order of `parts` is that of the blocks in the trace. Blocks that cannot be read have no part,
// and nothing says so: their file is not found.
struct bundle_reader {
	uint64_t *blocks; // offsets of BUNDLE blocks
	size_t blocks_count, blocks_capacity;
	size_t blocks_read; // of which the labels were read
	struct bundle_reader_part *parts;
	size_t parts_count, parts_capacity;
	struct bundle_reader_file **files; // that were asked for
	size_t files_count, files_capacity;
};

void bundle_reader_fini(struct bundle_reader *bundle_reader); // accepts { 0 }
// Note that a BUNDLE block begins at this offset of the trace. Nothing is read.
void bundle_reader_add(struct bundle_reader *bundle_reader, uint64_t block_at);

// Append the payload of a BUNDLE block.
void bundle_reader_encode(struct bytes *out, const struct bundle_reader_part *part,
			  const uint8_t *bytes);

// The file of a build-id, borrowed until bundle_reader_fini; NULL if it is not there or not whole.
// The first question unpacks every BUNDLE block once for its label, and each file's blocks once
// more; what was found is kept unpacked, up to BUNDLE_READER_FILE_MAX bytes a file. What was not
// found is looked for again at each question. A file that was packed twice is found as its last
// copy.
const void *bundle_reader_find(struct bundle_reader *bundle_reader, const struct store *store,
			       const uint8_t *build_id, size_t build_id_length, size_t *size);
