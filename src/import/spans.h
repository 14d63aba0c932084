// spans: parts of an address space, as a sorted list. `struct spans s = { 0 };` is an empty one.
//
// For example 10 to 20 and 30 to 40, with 20 to 30 added, are one part, 10 to 40; with 15 to 35
// taken out of that, two: 10 to 15 and 35 to 40.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct span {
	uint64_t start, end; // the end excluded
};

// Items are sorted by start, none is empty, and between two there is a gap of at least one byte.
struct spans {
	struct span *items; // they rise, and do not touch
	size_t count, capacity;
};

// Accepts { 0 }; it is an empty list again.
void spans_fini(struct spans *spans);

// Put in, or take out, what is from `start` to `end`, whatever was there.
void spans_add(struct spans *spans, uint64_t start, uint64_t end);
void spans_remove(struct spans *spans, uint64_t start, uint64_t end);

// The first part at or after `start` that no span has, up to `end`: its length, 0 if there is none.
// *start moves to where it begins.
uint64_t spans_gap(const struct spans *spans, uint64_t *start, uint64_t end);
