// pdata: the step outwards from a place in 64-bit code of Windows, compiled from the image's table
// of functions (.pdata) into a rule of unwind.h. For 32-bit code there is no such table: it follows
// the frame pointers, and says that the stack may miss frames.
//
// An unwind code undoes one instruction of a function's prologue: a push, a subtraction from the
// stack pointer, a frame pointer that is set, a register that is stored. All of them together say
// where the return address is. gcc sets the frame pointer before it pushes: so what is after that
// code in the list counts from the frame pointer, and what is in front of it from the stack
// pointer.
//
// A return address is after a call: not within an epilogue, and in a prologue only after the
// call that touches the pages of a large frame. An instruction that was interrupted may be
// anywhere: what of the prologue has not run is not undone, and an epilogue is recognised by its
// instructions.
#pragma once

#include "recorder/codemap.h"
#include "recorder/unwind.h"

// The rule for return address `pc` at `place`, without a frame id; `exact`: for the instruction at
// `pc`, which was interrupted. UNWIND_STOP where the tables say nothing, or where a rule cannot say
// it: a frame pointer that is not rbp. Code that has no entry and calls somebody nevertheless is
// looked at: it may set a frame pointer. An image that has no table at all (Go's) is a guess.
HIDDEN unwind_rule pdata_compile(const struct codemap_place *place, uintptr_t pc, bool exact);

// The entry of the function that `pc` is in, among those of the image at `base`. NULL: it is in
// none, which is a function that calls nobody.
HIDDEN const struct pdata_function *pdata_find(const uint8_t *base, uintptr_t pc);

// ---- Tables that a program makes itself, for code that it generates ----

enum { PDATA_FUNCTION_BYTES = 12 }; // of an entry

// Among `count` entries, the one for the code `at` bytes from what they count from, or NULL.
// `sorted`: they are in the order of their addresses, and none is in two.
HIDDEN const struct pdata_function *pdata_search(const struct pdata_function *table, size_t count,
						 bool sorted, uint32_t at);

// From where to where their code is, when they count from `base`. Returns whether they are sorted.
HIDDEN bool pdata_extent(const struct pdata_function *table, size_t count, uintptr_t base,
			 uintptr_t *start, uintptr_t *end);

// Where the function's code ends.
HIDDEN uintptr_t pdata_end(uintptr_t base, const struct pdata_function *function);

// Whether all that pdata_compile reads of the entry can be read.
typedef bool pdata_can_read(uintptr_t from, size_t bytes);
HIDDEN bool pdata_is_readable(uintptr_t base, const struct pdata_function *function,
			      pdata_can_read *can_read);

// Whether a function of the module at `place` begins at `pc`.
HIDDEN bool pdata_begins(const struct codemap_place *place, uintptr_t pc);
