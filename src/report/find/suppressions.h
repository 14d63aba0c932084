// suppressions: which blocks that are live at exit are meant to be, in the languages of
// LeakSanitizer and of Valgrind, mixed as one likes.
//
//     leak:PATTERN      LeakSanitizer's: a function, source file or module of any frame has the
//                       pattern in it; * stands for anything, ^ and $ for the ends. Of operator
//                       new, which is the sanitizer's there, only the function is looked at
//     {                 Valgrind's: the innermost frames, in their order
//        NAME
//        Memcheck:Leak
//        match-leak-kinds: …      which states of reachability it is about; without it, all
//        fun:GLOB  obj:GLOB  src:GLOB[:LINE]  ...
//     }
//
// Lines for other tools (race:, Memcheck:Cond …) are passed over. The recorder's stacks begin with
// the caller of malloc: a first line fun:malloc (calloc, realloc, _Znwm …) stands for the call and
// needs no frame. Mangled C++ names of Valgrind's lines are demangled; of one with * or ? the
// names before that are: _ZN4base4Lazy* is base::Lazy and all that is in it.
//
// Which were of use is counted: those that were not are listed, so that lists do not grow old.
#pragma once

#include "base/err.h"
#include "report/ask/names.h"
#include "trace/trace.h"

struct suppressions;

struct suppressions *suppressions_new(void);
void suppressions_free(struct suppressions *suppressions); // NULL is allowed

// Add those of a file's text. ERR_USAGE, with the line, on what is in no language.
bool suppressions_add(struct suppressions *suppressions, const char *path, const char *text,
		      struct err *err);

// Whatever blocks are.
#define SUPPRESSIONS_ALL ((1u << TRACE_REACH_STATES_COUNT) - 1)

// The first that matches the stack, and blocks in one of these states (1 << enum
// trace_reach_state): what it is called; it was of use for so many blocks. NULL: none does.
const char *suppressions_match(struct suppressions *suppressions, const struct names_stack *stack,
			       unsigned states, uint64_t blocks);

// The next one that was of no use, from *at = 0 on: its name and where it is. NULL: no more.
const char *suppressions_unused(const struct suppressions *suppressions, size_t *at,
				const char **path, unsigned *line);
