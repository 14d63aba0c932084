// wrappers: functions that allocate on behalf of somebody else.
//
// The innermost frame of nearly every stack is operator new, g_malloc, xmalloc or the like, which
// says nothing about who wanted the memory. The report's first line is therefore the innermost
// function that is not in this table; --all-frames shows the others too. A function belongs here
// only if it is generic: it allocates what its caller asks for and knows nothing else.
#ifndef REPORT_WRAPPERS_H
#define REPORT_WRAPPERS_H

#include <stdbool.h>

// `function` is a demangled name, with or without parameters. NULL is no wrapper.
bool wrappers_match(const char *function);

// Whether `function` is where every thread of a process begins (_start, start_thread …). Such
// frames end nearly every stack and say nothing.
bool wrappers_match_root(const char *function);

#endif
