// stack_match: which stacks of two traces are the same to a reader.
//
// Two stacks are the same if they pass through the same functions, frame by frame, inlined ones
// included. Addresses do not count, nor lines, so that a stack stays itself when code moves, when
// another compiler inlines otherwise, and when modules are loaded elsewhere:
//
//     a function       its demangled name without parameters (an inlined one may be known without
//                      them), without what the compiler adds for clones and parts of it
//                      ("[clone .constprop.0]", ".isra.0", ".cold") and without the numbers that it
//                      gives to what has no name ("{lambda(int)#2}", "{closure#0}", "$_1")
//     its module       the file's name without folders and version: libc.so.6 and libc.so are one.
//                      The program itself has no name: app-1.0 and app-1.1 are one.
//                      A script's file is its module, by its place in the program
//                      (report/ask/script_place.h).
//     its source file  the name without folders: two files of a program may each have a function
//                      `load` of their own. A file of C of the program has the folders, too, from
//                      the one on that it has in common with main's: a/util.c and b/util.c, in
//                      whatever folder it was built. Where it is not known (a build without
//                      lines), the first function of that name in that module
//     without a name   offset in the module; generated code has none, and is all one
//
// The processes of a trace are distinguished by program: the name of the executable without
// folders. The program that a trace began with is one with that of the other trace if neither has
// the other's: a new version under a new name.
#pragma once

#include "report/ask/names.h"

struct stack_match;

struct stack_match *stack_match_new(void);
void stack_match_free(struct stack_match *stack_match); // NULL is allowed

// From now on stacks are those of the trace that `names` and `reader` are of: borrowed until the
// next call, or until stack_match_free.
void stack_match_turn(struct stack_match *stack_match, struct names *names,
		      const struct reader *reader);

// The number of a stack of a process: the same for twins, from whichever trace they come. 0: no
// stack.
uint32_t stack_match_stack(struct stack_match *stack_match, process_id process, stack_id stack);

// The frames of a stack of that number, innermost first, inlined ones included: numbers that are
// the same for frames that read the same. At most `max`; how many.
size_t stack_match_frames(const struct stack_match *stack_match, uint32_t stack, uint32_t *frames,
			  size_t max);

// The number of a process's program.
uint32_t stack_match_program(struct stack_match *stack_match, process_id process);

// Bytes of memory used now.
size_t stack_match_bytes(const struct stack_match *stack_match);
