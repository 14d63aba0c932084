// wrappers: functions that allocate on behalf of somebody else.
//
// The innermost frame of nearly every stack is operator new, g_malloc, xmalloc or the like, which
// says nothing about who wanted the memory. The report's first line is therefore the innermost
// function that is not in this table; --all-frames shows the others too. A function belongs here
// only if it is generic: it allocates what its caller asks for and knows nothing else.
#pragma once

#include "base/str.h"

// One more for all that is asked from here on: a name, or a pattern in which '*' is any text. It is
// borrowed. Before anything is asked, in one thread.
void wrappers_fold(const char *pattern);

// `function` is a demangled name, with or without parameters. NULL is no wrapper.
bool wrappers_match(const char *function);

// Append a regular expression of the whole names of those that call no code of the program's: what
// is called below them is theirs. Names are without return type and parameters.
void wrappers_add_expression(struct str *text);

// Whether a name, without return type and parameters, is like `pattern`: '*' stands for any text.
bool wrappers_match_pattern(const char *pattern, const char *function);

// Is a function a wrapper because of the module (a path) that it is in? The recorder's own are:
// what malloc asks of the kernel has come through them. In the C library and the dynamic linker
// those without a name are: inner code of malloc, stdio or dlopen, which a library without debug
// symbols does not name, on behalf of whoever called the function that it does name. So it is with
// ntdll, kernel32, kernelbase and the C runtimes of Windows (ucrtbase, msvcrt).
bool wrappers_match_module(const char *module, bool named);

// Whether a file of a source is of Rust's standard library: what is inlined from there may have no
// more than the last part of its name.
bool wrappers_match_source(const char *file);

// Whether one without a name that `function` calls in the same file is of its own, and a wrapper
// too: palloc and g_slice_alloc come to malloc by such. So it is with all wrappers but C++'s and
// Rust's, which are compiled into the program's file and call its functions.
bool wrappers_match_outer(const char *function);

// Whether a function is the native code of a runtime of JavaScript: its file is node, libnode,
// electron, chrome or the like, or its name is V8's or node's, wherever it is. What it allocates is
// asked for by the script that called it.
bool wrappers_match_runtime(const char *module, const char *function);

// Whether a script's file is part of such a runtime: node:internal/buffer, ext:core/01_core.js.
bool wrappers_match_runtime_script(const char *file);

// Whether `function` is where every thread of a process begins (_start, start_thread …). Such
// frames end nearly every stack and say nothing.
bool wrappers_match_root(const char *function);
