// encoded: names of Fortran's, OCaml's and Haskell's compilers as a person writes them.
//
//     __store_MOD_fill                store::fill             gfortran
//     camlStdlib__List__map_216       Stdlib.List.map         ocamlopt
//     base_GHCziBase_map_info         GHC.Base.map            ghc
//
// Only forms that no other language has: Ada's pkg__sub and Nim's foo__module_u12 are names of C,
// too, and are left as they are. Names are untrusted.
#pragma once

// The readable form; the caller owns it (mem_free). NULL: none of these.
char *encoded_demangle(const char *name);
