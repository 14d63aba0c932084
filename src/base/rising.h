// rising: how far into a list whose items rise by a number one has to go.
//
//     RISING_BELOW(list, count, member, key)    how many items have a `member` below the key
//     RISING_UPTO(list, count, member, key)     how many have one of at most the key
//
// The first is where an item with that key begins, or would be put; the last item of at most the
// key is the one before the second's, if that is not 0. Members are of 32 or 64 bits, and without a
// sign. For example, of members 3, 5, 5 and 9, one is below 5, three are at most 5, and four are
// below 10. rising_below and rising_upto are the same for a list of plain numbers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Items of `stride` bytes, each with its number, of `width` bytes, at an offset. With `equal` those
// with the key are passed, too. All but list, count and key are constants where it is inlined, so
// each use is a search of its own. `list` may be NULL if `count` is 0. A search of a million items
// looks at twenty.
static inline __attribute__((always_inline)) size_t rising_place(const void *list, size_t count,
								 size_t stride, size_t offset,
								 size_t width, uint64_t key,
								 bool equal)
{
	// Items before `low` are passed, those from `high` on are not: they meet where the answer
	// is. For example 3, 5, 5, 9 and the key 5: middle 2 (5, not below) makes high 2, middle 1
	// the same 1, and middle 0 (3) makes low 1.
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *at = (const char *)list + middle * stride + offset;
		uint64_t number;
		uint32_t half;

		// Copied as bytes: a member may be at any offset of a packed item.
		if (width == sizeof half) {
			memcpy(&half, at, sizeof half);
			number = half;
		} else {
			memcpy(&number, at, sizeof number);
		}
		if (number < key || (equal && number == key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// `list` is evaluated once; its items' type says stride, offset and width.
#define RISING_PLACE(list, count, member, key, equal)                                        \
	rising_place((list), (count), sizeof *(list), offsetof(__typeof__(*(list)), member), \
		     sizeof(list)->member, (key), (equal))
#define RISING_BELOW(list, count, member, key) RISING_PLACE(list, count, member, key, false)
#define RISING_UPTO(list, count, member, key) RISING_PLACE(list, count, member, key, true)

// How many numbers are below the key; how many are at most the key.
static inline size_t rising_below(const uint64_t *list, size_t count, uint64_t key)
{
	return rising_place(list, count, sizeof *list, 0, sizeof *list, key, false);
}

static inline size_t rising_upto(const uint64_t *list, size_t count, uint64_t key)
{
	return rising_place(list, count, sizeof *list, 0, sizeof *list, key, true);
}
