// enter_table: functions of a stripped allocator that go through the same table as its malloc.
//
// Chromium's malloc calls what a table of functions says (its AllocatorDispatch), and so do
// functions that are not exported: those that may fail (UncheckedMalloc, which Skia takes pixels
// from). Their blocks are freed by free, as any other. The table has each of these functions after
// the one that may not fail:
//
//     malloc, its unchecked one, calloc, its unchecked one, memalign, …, realloc, its …, free
//
// So what malloc, calloc, memalign, realloc and free take from the table says where these are; and
// near malloc there are functions that do nothing but jump to one. Where those of the exported
// functions are not so in one table, there are none. x86-64.
//
// At the table's end, after what malloc_usable_size takes, are those for blocks that are freed by a
// function of their own (Rust's with a large alignment): malloc of a size and an alignment, its
// unchecked one, realloc, its unchecked one, free. The unchecked ones are called.
#pragma once

#include "wire/compiler.h"

#include <stdint.h>

enum enter_table_kind {
	ENTER_TABLE_MALLOC,
	ENTER_TABLE_CALLOC,
	ENTER_TABLE_REALLOC,
	ENTER_TABLE_ALIGNED, // (size, alignment)
	ENTER_TABLE_ALIGNED_REALLOC,
	ENTER_TABLE_ALIGNED_FREE,
	ENTER_TABLES,
};

// What is exported; none is NULL but `usable_size`.
struct enter_table {
	const uint8_t *malloc, *calloc, *memalign, *realloc, *free, *usable_size;
	uintptr_t start, end; // of the object
};

// Find the functions of each kind that are not exported; NULL where there is none.
HIDDEN void enter_table_find(const struct enter_table *exported, uint8_t *found[ENTER_TABLES]);
