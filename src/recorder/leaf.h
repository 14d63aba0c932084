// leaf: whether a function of 64 bits is so simple that it can be called anywhere, whatever its
// caller holds.
//
// A program gives the system a function of its own to ask for the tables of generated code. It is
// made to be called while an exception is on its way, not inside of an allocation: it might
// wait for a lock that the calling thread holds, or allocate. One that calls nobody, writes to
// nothing but its own frame, and has no loop, does neither, and comes to an end.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How much of a function is looked at: a longer one is not simple.
enum { LEAF_BYTES_MAX = 256 };

// Whether the function at code[0..size) is one. What is not known is not simple.
HIDDEN bool leaf_is_simple(const uint8_t *code, size_t size);
