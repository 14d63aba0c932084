// walk: from block to block through a file, whatever is wrong with it.
//
// A step reads one header and checks it. Where there is none, the file is searched for the next
// one: from just after the last good header, because a length may have been true and the bytes
// after it missing. Blocks are numbered, so that a step also knows how many it has missed.
#pragma once

#include "trace/block.h"
#include "trace/store.h"

// Plain data without a file of its own: a copy is a second walk from the same place.
struct walk {
	uint64_t at;        // where the next block should begin
	uint64_t search_at; // where to search from if it does not
	uint32_t sequence;  // the number it should have
	uint64_t missed;    // blocks that are not there
	uint64_t whole_at;  // after the last whole block
	// What is not as it should be is remembered once, the first of it, with its offset in the
	// file.
	bool damaged; // something was not as it should be; `damage` is the first of it
	uint64_t damage_at;
	char damage[96];
};

void walk_init(struct walk *walk);

// The next block and its offset. False at the end of the file, or of what is whole of it.
bool walk_next(struct walk *walk, const struct store *store, struct block *block, uint64_t *at);

// The file may have grown since it ended: go on after what was whole of it.
void walk_retry(struct walk *walk);

// The caller found the payload of the block at `at` to be bad: search after its header.
void walk_reject(struct walk *walk, uint64_t at, const char *why);

// Reads payloads; keeps its memory from block to block.
struct walk_loader {
	struct bytes stored;
	struct block_unpacker unpacker;
};

void walk_loader_fini(struct walk_loader *loader); // accepts { 0 }

// Read a payload and hold it against its checksum, no more.
// False, and why, where it is damaged or the file ends in it.
bool walk_check(struct walk_loader *loader, const struct store *store, const struct block *block,
		uint64_t at, struct err *err);

// Read, check and unpack. *payload lives until the loader's next use.
bool walk_load(struct walk_loader *loader, const struct store *store, const struct block *block,
	       uint64_t at, struct bytes_cursor *payload, struct err *err);
