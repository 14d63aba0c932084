// rust: names of the Rust compiler as a person writes them, legacy and v0.
//
// Legacy names look like C++ (_ZN4core3fmt5write17h0123456789abcdefE) and end in a hash, which is
// left out. v0 names begin with _R and are described in Rust's RFC 2603. Both are untrusted: a v0
// name refers back to itself, so that a short one can ask for deep nesting or an endless text;
// depth, steps and length are bounded.
#pragma once

// The readable form; the caller owns it (mem_free). NULL: not a Rust name, or a broken one.
char *rust_demangle(const char *name);
