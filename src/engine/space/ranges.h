// ranges: what is mapped in one address space, by address.
//
// A balanced tree (AVL) of ranges that never overlap. Each subtree knows its lowest and highest
// address, the bytes in it, its holes and the largest of them, so that a question about holes in
// any part of the address space costs O(log n), like a change does. Memory goes with the number
// of ranges, whatever is between them.
//
// `struct ranges r = { 0 };` is an empty one. One thread. Pointers to ranges are valid until the
// next change.
#pragma once

#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Consecutive pages that are alike in all that is known of them.
struct range {
	uint64_t start, end; // the end excluded
	uint64_t offset;     // of `start` in the file
	uint64_t number;     // of the event that mapped it
	uint64_t time_ns;    // when
	stack_id stack;      // of that call
	thread_id thread;    // the same
	file_id file;        // 0: anonymous
	uint32_t protection; // as it is now
	uint32_t flags;      // MAP_*
	uint32_t commit;     // who keeps its lifetime as committed memory; 0: it is not committed
	uint8_t owner;       // enum space_owner
	bool inherited;      // a forked process has it from its parent
	bool baseline;       // was there before the recording could see it
};

// Each struct is copied by value only while it is empty; a full copy is ranges_copy.
struct ranges {
	struct ranges_node *nodes; // private; [0] is nobody
	size_t count, capacity;
	uint32_t root;
	uint32_t spare; // nodes to use again, chained
	size_t used;    // ranges in it
};

void ranges_fini(struct ranges *ranges); // accepts { 0 }

// A copy of `from` into an empty one.
void ranges_copy(struct ranges *ranges, const struct ranges *from);

// The range that holds the byte at `address`, or NULL.
struct range *ranges_find(const struct ranges *ranges, uint64_t address);

// The first range that ends after `address`, which it may hold; NULL: there is none. To iterate,
// ask again with the end of the last.
struct range *ranges_from(const struct ranges *ranges, uint64_t address);

// The last range that ends at or before `address`, or NULL.
struct range *ranges_before(const struct ranges *ranges, uint64_t address);

// It must not be empty, nor overlap another.
void ranges_insert(struct ranges *ranges, const struct range *range);

// Remove the range that begins at `start`; one must.
void ranges_remove(struct ranges *ranges, uint64_t start);

// Cut the range that holds `at` in two there. Nothing if a range begins there, or none is there.
void ranges_cut(struct ranges *ranges, uint64_t at);

// Make one of the two ranges that meet at `at`, if they are alike. Returns whether it did.
bool ranges_join(struct ranges *ranges, uint64_t at);

// What is free in a part of the address space: between ranges, before the first and after the last.
// Of [0, 10) with the range [2, 5) there are two holes, 7 bytes, the largest 5 at 5.
struct ranges_holes {
	uint64_t count;
	uint64_t bytes;      // of all of them
	uint64_t largest;    // bytes of the largest
	uint64_t largest_at; // where it begins: the lowest of equals
};
struct ranges_holes ranges_holes(const struct ranges *ranges, uint64_t low, uint64_t high);

// Bytes in all ranges. `ranges` may be NULL.
uint64_t ranges_bytes(const struct ranges *ranges);
