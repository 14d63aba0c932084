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
#ifndef RECORDER_PDATA_H
#define RECORDER_PDATA_H

#include "recorder/codemap.h"
#include "recorder/unwind.h"

// The rule for return address `pc` at `place`, without a frame id; `exact`: for the instruction at
// `pc`, which was interrupted. UNWIND_STOP where the tables say nothing, or where a rule cannot say
// it: a frame pointer that is not rbp. An image that has no table at all (Go's) is a guess.
HIDDEN unwind_rule pdata_compile(const struct codemap_place *place, uintptr_t pc, bool exact);

// The entry of the function that `pc` is in, among those of the image at `base`. NULL: it is in
// none, which is a function that calls nobody.
struct pdata_function;
HIDDEN const struct pdata_function *pdata_find(const uint8_t *base, uintptr_t pc);

// Whether a function of the module at `place` begins at `pc`.
HIDDEN bool pdata_begins(const struct codemap_place *place, uintptr_t pc);

#endif
