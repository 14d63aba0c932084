// nest: which of many overlapping address ranges is the innermost one at an address.
//
// Functions contain inlined functions, symbols have aliases and sometimes overlap. A nest is built
// once from such ranges and then answers by binary search. It is kept as disjoint pieces in rising
// order: at most two for each range, however the ranges overlap, so that hostile input costs no
// more than n log n.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One range. Where several contain an address the deepest wins; then the one that begins last;
// then the shortest; then the smallest value.
struct nest_range {
	uint64_t start, end; // [start, end); empty ranges are ignored
	uint32_t depth;
	uint32_t value; // what nest_find answers
};

// { 0 } is an empty nest.
struct nest {
	struct nest_piece *pieces; // private
	size_t count;
};

// Build from `ranges`, which are sorted in place and not kept.
void nest_build(struct nest *nest, struct nest_range *ranges, size_t count);
void nest_fini(struct nest *nest);

// The value of the innermost range at `address`. False if there is none.
bool nest_find(const struct nest *nest, uint64_t address, uint32_t *value);
