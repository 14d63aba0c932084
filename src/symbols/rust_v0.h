// rust_v0: the v0 mangling of Rust (RFC 2603), read by recursive descent with a bounded depth.
//
// The grammar is nested and refers back to itself, so recursion is its natural form; DEPTH_MAX
// in the source bounds the stack, STEPS_MAX the time and TEXT_MAX the text.
#pragma once

// `name` without its leading _R. The readable form without hashes and suffixes; the caller owns
// it (mem_free). NULL: broken or beyond the bounds.
char *rust_v0_demangle(const char *name);
