// why: what keeps one block: the way from a root of the program to it, as it was when reachability
// was looked for (reached.h); or that nothing does.
#pragma once

#include "report/ask/query_context.h"
#include "report/table/paper.h"
#include "trace/reach.h"

// The way: blocks[0] is the block itself, and blocks[i + 1] holds a pointer to blocks[i]; the last
// one is held by a root, or by nothing. They are places in reach.blocks.
struct why {
	struct query_context *asked; // borrowed
	struct trace_reach reach;    // of the process's end, or the last one
	uint32_t *blocks;            // owned: the block itself, the one that holds it, and so on
	size_t count, capacity;
	uint64_t address; // as it was asked for
};

// The block that has the byte at `address`, of the selected processes the first that has one.
// ERR_USAGE: there is none, or it was not recorded.
bool why_find(struct why *why, struct query_context *asked, uint64_t address, struct err *err);
void why_fini(struct why *why); // accepts { 0 }

// For people, and as JSON (docs/schema/why.json).
void why_write_text(const struct why *why, struct paper *paper, bool all_frames);
void why_write_json(const struct why *why, struct sink *sink);
