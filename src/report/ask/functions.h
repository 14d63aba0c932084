// functions: what stacks pass, each function once.
//
// Calls of one name in one module and one source file are one function, whatever their lines: two
// files of a program may each have a function `load` of their own, and a script is a module. Where
// the file of a call is not known, it is of the first of that name. Code without a name is one for
// each offset of its module. Functions have numbers, dense, in the order in which they were
// met; FUNCTIONS_NONE stands for no stack at all. A frame's are found once.
#pragma once

#include "report/ask/names.h"

enum { FUNCTIONS_NONE = 0 };

struct functions;

// Both are borrowed. `plain`: none is taken for a wrapper or for a thread's beginning.
struct functions *functions_new(const struct reader *reader, struct names *names, bool plain);
void functions_free(struct functions *functions); // NULL is allowed

// The functions at a frame, innermost first; at least one. Valid until the next call.
const uint32_t *functions_at(struct functions *functions, frame_id frame, size_t *count);

// FUNCTIONS_NONE among them.
uint32_t functions_count(const struct functions *functions);

// Of the first call that was met; NULL: of FUNCTIONS_NONE.
const struct symbol *functions_symbol(const struct functions *functions, uint32_t function);

// It allocates on behalf of its caller; threads begin in it (wrappers.h).
bool functions_wraps(const struct functions *functions, uint32_t function);
bool functions_begins(const struct functions *functions, uint32_t function);

// Their order by what they are called: the same in every trace.
int functions_compare(const struct functions *functions, uint32_t left, uint32_t right);
