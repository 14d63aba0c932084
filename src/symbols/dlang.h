// dlang: names of D's compilers (dmd, ldc, gdc) as a person writes them.
//
// _D3app5store6nestedFiZ5innerMFiZi is app.store.nested(int).inner(int): scopes, arguments of
// templates and types of parameters, without what the function returns and its attributes. Names
// are untrusted, and refer back to parts of themselves: depth, steps and length are bounded.
#pragma once

// The readable form; the caller owns it (mem_free). NULL: not a D function's name, or a broken one.
char *dlang_demangle(const char *name);
