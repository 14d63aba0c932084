// chain: blocks one after the other in a file, numbered, with their index.
//
// What a writer, a repair and a bundle have in common. A call that fails leaves the file as it
// was before it (out.h).
#pragma once

#include "trace/block.h"
#include "trace/out.h"
#include "trace/seek.h"
#include "trace/trace.h"

// The end of a file that grows. One thread.
struct chain {
	struct out out;
	uint32_t sequence;   // of the next block
	struct seek seek;    // blocks since the last INDEX block
	uint64_t index_at;   // offset of the last INDEX block, 0: none
	uint64_t next_event; // what blocks without events say about their place
	uint64_t last_ns;
	struct block_packer packer;
	struct bytes raw;    // the next payload; empty after each block
	struct bytes packed; // private
};

void chain_init(struct chain *chain, int fd); // borrows the descriptor
void chain_fini(struct chain *chain);         // accepts { 0 }

// Write a block with chain->raw as payload. `last` may use the room kept free. Type, counts and
// times of *block are the caller's, the rest is filled in. chain->raw is empty afterwards, whatever
// is returned.
bool chain_put(struct chain *chain, struct block *block, bool last, struct err *err);

// A block without events: place and time are the chain's.
bool chain_put_plain(struct chain *chain, enum block_type type, bool last, struct err *err);

// Write a block whose payload is packed already.
bool chain_copy(struct chain *chain, const struct block *block, const uint8_t *stored,
		struct err *err);

// Write an INDEX block if it is time for one.
bool chain_index(struct chain *chain, struct err *err);

// Write an INDEX block, if there is anything to list, and the END block.
bool chain_end(struct chain *chain, const struct trace_end *end, struct err *err);
