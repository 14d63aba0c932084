// reach: which blocks were reachable, as bytes (docs/format.md, section 5.12).
//
// A record has at most REACH_BLOCKS_MAX blocks; of more, the writer makes several, which differ in
// their blocks alone. Addresses rise from one block to the next, over all parts.
#pragma once

#include "trace/bytes.h"
#include "trace/trace.h"

enum { REACH_BLOCKS_MAX = 1 << 16 };

// What is known of what a record names.
// Ids of the record must be below these.
struct reach_known {
	size_t processes_count, threads_count, stacks_count;
};

// Encode `count` of the blocks of `reach`, from its block `skip` on.
void reach_encode(struct bytes *out, const struct trace_reach *reach, uint64_t skip,
		  uint64_t count);

// Decode a part; with `whole` its blocks too, which reach_fini gives back. Without, `blocks` is
// NULL, and they are checked all the same. False, with nothing to give back, if it contradicts
// itself or what is known.
bool reach_decode(struct bytes_cursor in, const struct reach_known *known, bool whole,
		  struct trace_reach *reach);

void reach_fini(struct trace_reach *reach); // accepts { 0 }

// "unreachable"; "stack". "?" for what is not one.
const char *reach_state_word(uint8_t state);
const char *reach_place_word(uint8_t place);
