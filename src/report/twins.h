// twins: which stacks of two traces are the same to a reader.
//
// Two stacks are the same if they pass through the same functions, frame by frame, inlined ones
// included. Addresses do not count, nor lines, so that a stack stays itself when code moves, when
// another compiler inlines otherwise, and when modules are loaded elsewhere:
//
//     a function       its demangled name, without what the compiler adds for clones and parts of
//                      it ("[clone .constprop.0]", ".isra.0", ".cold")
//     its module       the file's name without folders and version: libc.so.6 and libc.so are one.
//                      The program itself has no name: app-1.0 and app-1.1 are one.
//     without a name   offset in the module; generated code has none, and is all one
//
// The processes of a trace are told apart by program: the name of the executable without folders.
// The program that a trace began with is one with that of the other trace if neither has the
// other's: a new version under a new name.
#ifndef REPORT_TWINS_H
#define REPORT_TWINS_H

#include "report/names.h"

struct twins;

struct twins *twins_new(void);
void twins_free(struct twins *twins); // NULL is allowed

// From now on stacks are those of the trace that `names` and `reader` are of: borrowed until the
// next call, or until twins_free.
void twins_turn(struct twins *twins, struct names *names, const struct reader *reader);

// The number of a stack of a process: the same for twins, from whichever trace they come. 0: no
// stack.
uint32_t twins_stack(struct twins *twins, process_id process, stack_id stack);

// The number of a process's program.
uint32_t twins_program(struct twins *twins, process_id process);

// Bytes of memory used now.
size_t twins_bytes(const struct twins *twins);

#endif
