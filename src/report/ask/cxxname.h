// cxxname: what a reader needs of a demangled function's name.
//
// A demangled C++ name carries its return type, its parameters and every default template
// argument; on a terminal that hides the one word that matters. These functions find that word
// and shorten the rest. Rust's and C's names pass through the same way. Text in, text out.
#pragma once

#include "base/str.h"

// The qualified name in `text`, without return type, parameters and what follows them:
// "void ns::f<int>(long) const" -> "ns::f<int>". Borrowed from `text`, `*length` bytes long.
const char *cxxname_base(const char *text, size_t *length);

// `text` from where its namespaces and classes begin, so that '^std::' finds all. Only functions of
// templates have a return type in front: "void std::sort<int*>(int*, int*)" ->
// "std::sort<int*>(int*, int*)". Any other is as it was.
const char *cxxname_scoped(const char *text);

// Append `text` to `out` in at most `width` columns (at least 8). Long spellings of the standard
// library's types and default template arguments go first; what is still too long loses its
// return type, its parameters, its template arguments, its outer namespaces, in this order.
// Control characters become '?', and bytes that are not UTF-8 U+FFFD, for a name comes from a file
// that nobody vouches for.
void cxxname_shorten(const char *text, size_t width, struct str *out);

// Columns that a UTF-8 text takes, counting one for each code point.
size_t cxxname_columns(const char *text);
