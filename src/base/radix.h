// radix: sorting numbers by their digits.
#ifndef BASE_RADIX_H
#define BASE_RADIX_H

#include <stddef.h>
#include <stdint.h>

// Sort by the bits from `shift` up; those below have no say, and numbers that are equal above stay
// in their order. `scratch` has room for as many. The time is that of a few passes.
void radix_sort(uint64_t *list, uint64_t *scratch, size_t count, unsigned shift);

#endif
