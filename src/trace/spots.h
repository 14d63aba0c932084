// spots: small numbers for the addresses of one block of events, one for each.
//
//     spots_begin      a block begins: nothing has a spot
//       spots_of       the spot of an address; that of a new one is the next free number
//
// Who reads keeps what is known of a block of memory in a list by spots, and looks for its address
// once in a block of events. The first SPOTS_MAX addresses have one; each that is new after them
// has SPOTS_NONE.
//
// Memory: 8 bytes a slot, of which at most three quarters are used; from 32 KiB to 1 MiB, as the
// block before needed.
#pragma once

#include "base/map.h"
#include "base/mem.h"
#include "wire/compiler.h"

#include <stdint.h>

enum { SPOTS_MAX = 1 << 16, SPOTS_NONE = SPOTS_MAX };

enum { SPOTS_ADDRESS_BITS = 48 }; // of addresses with a slot; the rest of it is the spot

struct spots {
	uint64_t *slots; // address << 16 | spot; 0: free
	unsigned bits;   // of them, the binary logarithm; 0: there are none yet
	unsigned room;   // the same, that there is memory for
	uint32_t count;  // spots that were given
	struct map wide; // of addresses that have no slot: 0, and those of more bits
};

void spots_fini(struct spots *spots); // accepts { 0 }
void spots_begin(struct spots *spots);

// What spots_of asks where there is no slot to be found.
uint32_t spots_of_wide(struct spots *spots, uint64_t address);
uint32_t spots_add(struct spots *spots, uint64_t address, size_t at);

static inline size_t spots_home(const struct spots *spots, uint64_t address)
{
	uint64_t turned = address >> 4 | address << 60; // the low bits are mostly 0

	return (size_t)(turned * UINT64_C(0x9e3779b97f4a7c15) >> (64 - spots->bits));
}

// It will be asked for soon.
static inline void spots_expect(const struct spots *spots, uint64_t address)
{
	mem_expect(&spots->slots[spots_home(spots, address)]);
}

// spots_begin was called.
static inline uint32_t spots_of(struct spots *spots, uint64_t address)
{
	uint64_t key = address << (64 - SPOTS_ADDRESS_BITS);
	size_t mask = ((size_t)1 << spots->bits) - 1;
	size_t at = spots_home(spots, address);

	if (unlikely(address - 1 >= (UINT64_C(1) << SPOTS_ADDRESS_BITS) - 1))
		return spots_of_wide(spots, address);
	for (; spots->slots[at] != 0; at = (at + 1) & mask)
		if ((spots->slots[at] ^ key) < SPOTS_MAX)
			return (uint32_t)(spots->slots[at] & (SPOTS_MAX - 1));
	return spots_add(spots, address, at);
}
