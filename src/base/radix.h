// radix: sorting numbers by their digits.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Sort by the bits from `shift` up; those below have no say, and numbers that are equal above stay
// in their order. `scratch` has room for as many. The time is that of a few passes.
void radix_sort(uint64_t *list, uint64_t *scratch, size_t count, unsigned shift);

// A number, and what goes with it.
struct radix_pair {
	uint64_t key, value;
};

// By all bits of their keys; pairs of equal keys stay in their order.
void radix_sort_pairs(struct radix_pair *list, struct radix_pair *scratch, size_t count);

// The same without as much room again, for lists of millions, in about the same time: pairs of
// equal keys come in any order.
void radix_sort_pairs_lean(struct radix_pair *list, size_t count);
