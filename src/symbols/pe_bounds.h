// pe_bounds: where the functions of a Windows image begin and end, without any symbols.
//
// On x64 the exception directory (.pdata) tells: every function that touches the stack has an
// entry there, and what the compiler moved elsewhere says which function it belongs to. What has no
// entry, and all code on x86, has no such table; there a function surely ends before anything that
// may be the beginning of another: what some call leads to, what some relocated pointer means, what
// follows padding, and what follows a return at an address where functions begin. So an end is
// never too late, but may be too early.
#pragma once

#include "trace/pe.h"

// { 0 } knows nothing.
struct pe_bounds {
	const struct pe *pe;                  // borrowed
	struct pe_bounds_function *functions; // private
	size_t functions_count, functions_capacity;
	uint32_t *starts; // private
	size_t starts_count, starts_capacity;
	bool searched;
};

void pe_bounds_init(struct pe_bounds *bounds, const struct pe *pe);
void pe_bounds_fini(struct pe_bounds *bounds);

// The entry of .pdata that covers `rva`: [*start, *end) and the beginning of the function that it
// is a part of. False if there is none.
bool pe_bounds_find(const struct pe_bounds *bounds, uint32_t rva, uint32_t *start, uint32_t *end,
		    uint32_t *function);

// Where the function that begins at `start`, and has no entry, ends at the latest.
uint32_t pe_bounds_end(struct pe_bounds *bounds, uint32_t start);
