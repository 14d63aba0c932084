// demangle: names of C++, Rust, D, Fortran, OCaml and Haskell as a person writes them.
//
// C++ (Itanium) goes through the demangler of the C++ runtime, with a bound on what it may print.
// Rust is done here: `legacy` names (_ZN…17h<hash>E, the hash is left out) and v0 names (_R…).
// D's names (_D…) are read by dlang.h, those of the last three by encoded.h.
// Microsoft's C++ names (?name@@…) become their name with its scopes (undecorate.h). Names are
// untrusted; what is not understood is shown as it is.
#pragma once

#include <stdbool.h>

// The readable form; the caller owns it (mem_free). NULL: not a mangled name, or a broken one.
char *demangle(const char *name);
