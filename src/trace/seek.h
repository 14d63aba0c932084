// seek: where the blocks of a trace are, and at which events and times (docs/format.md, section 7).
//
// The writer keeps the blocks since its last INDEX block and writes them out every SEEK_BLOCKS_MAX
// blocks. Each INDEX block points to the one before it, so that a reader finds all of them from
// the end of the file.
#pragma once

#include "trace/block.h"

enum { SEEK_BLOCKS_MAX = 64 }; // in one INDEX block of ours

// As the block's header has it: in a block without events `first_event` is that of the next one.
struct seek_entry {
	uint64_t at; // byte offset of the block
	uint16_t type;
	uint32_t events_count;
	uint64_t first_event;
	uint64_t first_ns, last_ns;
};

struct seek {
	struct seek_entry *entries; // in the order of the file
	size_t count, capacity;
};

void seek_fini(struct seek *seek); // accepts { 0 }
void seek_add(struct seek *seek, uint64_t at, const struct block *block);

// Write the payload of an INDEX block. `previous` is the offset of the INDEX block before it, 0
// for none.
void seek_encode(const struct seek *seek, uint64_t previous, struct bytes *out);

// Append a payload's entries to *seek. False if it is not well formed; nothing is added then.
bool seek_decode(struct seek *seek, struct bytes_cursor payload, uint64_t *previous);

// Put the entries into the order of the file.
void seek_sort(struct seek *seek);

// The last entry of type EVENTS whose first time is at most `time_ns`, or SIZE_MAX.
size_t seek_find(const struct seek *seek, uint64_t time_ns);
