// mappers: who mapped what of an address space, and how large its largest hole were without each.
//
//     struct mappers mappers = { .space = space, .process = id, .low = 0, .high = end };
//       mappers_take       one walk over what is mapped
//       mappers_fini
//
// A mapper is a stack of one owner, or a file where there is no stack. What is free in a slot that
// a mapping takes in part is of no use to who reserves whole slots, as Windows does: it is the
// waste of the mapping below it in the slot, or else of the one above.
#pragma once

#include "base/map.h"
#include "engine/space/space.h"

// What one stack (or one file) of one owner has mapped.
struct mapper {
	stack_id stack;
	file_id file; // where there is no stack
	uint8_t owner;
	uint8_t protections; // bit p: some of it has protection p
	uint32_t flags;
	uint64_t count; // mappings
	uint64_t bytes;
	uint64_t committed;
	uint64_t waste; // unusable bytes in its slots
	uint64_t size_min, size_max;
	// at the moment that is shown
	uint64_t age_min_ns, age_max_ns;
	uint64_t largest_without; // the largest free block, if these were not there
};

struct mappers {
	const struct space *space;
	process_id process;
	uint64_t low, high;   // the part that is looked at
	uint64_t granularity; // of slots; 0: waste is not asked for
	uint64_t now_ns;
	uint64_t align;     // what is given begins at a multiple of it; 0: anywhere
	uint64_t stack_gap; // what is free below the main stack and is no hole
	// what is found
	uint64_t largest;    // hole
	struct mapper *list; // owned
	size_t count, capacity;
	struct map numbers; // private: key -> position
};

// Find all mappers of the part, in the order of their lowest mappings.
void mappers_take(struct mappers *mappers);
void mappers_fini(struct mappers *mappers);

// Whether it is of what every process needs and cannot help having.
bool mappers_is_fixture(uint8_t owner);

// Bytes from an address up to the next multiple: of 0x11000 in slots of 64 KiB 0xf000; of 0x20000
// none.
uint64_t mappers_rest(uint64_t address, uint64_t granularity);
