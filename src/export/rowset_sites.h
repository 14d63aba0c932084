// rowset_sites: what each stack's blocks add up to, while allocations are written: the table
// `sites`.
//
// For example two stacks that have the same names, of which one went through another address in
// `main`, are one site. Of each stack what was allocated, what was never freed, and bytes times
// nanoseconds are added up; joined, each is the sum.
//
//     rowset_sites_init
//       rowset_sites_add      for each block
//       rowset_sites_join     once, at the end
//     rowset_sites_fini
#pragma once

#include "engine/replay/lives.h"
#include "trace/reader.h"

// Counts and bytes in units (engine/replay/weight.h).
struct rowset_site {
	uint64_t count, bytes;           // allocated
	uint64_t kept_count, kept_bytes; // of them and of those from before: no call ended them
	unsigned __int128 byte_ns; // bytes times how long they were there: exact in whatever order
	stack_id stack;            // the first one that has the names
	uint64_t identity;         // of its names
};

struct rowset_sites {
	const struct reader *reader; // borrowed
	uint64_t before;             // a block of a lower number was there before the trace began
	uint64_t began_ns;           // when that was
	struct rowset_site *sites;   // by stack, until they are joined
	size_t count, capacity;
};

// Into a zeroed one.
void rowset_sites_init(struct rowset_sites *sites, const struct reader *reader);
void rowset_sites_fini(struct rowset_sites *sites); // accepts { 0 }

// What was added so far, to go on with apart.
// The caller ends it; the first one goes on by itself.
struct rowset_sites rowset_sites_copy(const struct rowset_sites *sites);

// A block of a stack that the trace has, or of none (0), with its end.
void rowset_sites_add(struct rowset_sites *sites, const struct lives_block *block,
		      const struct lives_end *end);

// Join stacks of equal names, of which `identity_of` says the number. Then `sites` has one of each,
// in the order of their first stacks, and none without blocks.
void rowset_sites_join(struct rowset_sites *sites,
		       uint64_t (*identity_of)(void *context, stack_id stack), void *context);
